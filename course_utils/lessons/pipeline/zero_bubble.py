"""Schedules that cut the backward pass in two, and fill the bubble with the half for which nobody waits.

The gradient of a stage's input (I) is what the stage before waits for. The gradient of its weights (W) is needed only
when the optimizer steps: it can wait until the rank would otherwise be idle.
"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action, Schedule, whole_number


def zb_h1_schedule(ranks: int, micro_batches: int) -> Schedule:
    """1F1B with W put off: a third of the bubble where F, I and W take equally long, and no rank keeps more than P.

    Rank r begins with P − r − 1 forward passes as in 1F1B, then F, I, W in turn, but its W comes r micro-batches
    late. So the gradients reach rank 0 without waiting for anyone's W, and the late W fill the end.

    The bubble of each rank: (P − 1)(F + I − W) in place of (P − 1)(F + I + W).

    Args:
        ranks: P, the stages too.
        micro_batches: m.

    Source: Qi et al. 2023, "Zero Bubble Pipeline Parallelism", §2.1 and table 1.
    """
    return _put_off(ranks, micro_batches, 1)


def zb_h2_schedule(ranks: int, micro_batches: int) -> Schedule:
    """More forward passes before the first backward one: no bubble at all inside a rank, for twice the memory.

    Rank r begins with 2(P − r − 1) forward passes, and its W comes 2r micro-batches late: each rank keeps 2P − 1. Where
    F, I and W take equally long, every rank works without a gap from its first action to its last. The last rank still
    starts and ends P − 1 passes after the first: the gain shows when the next batch begins where this one ends, without
    waiting for the others between two steps of the optimizer.

    Args:
        ranks: P, the stages too.
        micro_batches: m, at least 2P − 1 for the bubble to vanish.

    Source: Qi et al. 2023, §2.2, §4 and table 1: (P − 1)(F + I − 2W).
    """
    return _put_off(ranks, micro_batches, 2)


def _put_off(ranks: int, micro_batches: int, times: int) -> Schedule:
    """F, I, W in turn on each rank, after `times` as many forward passes as 1F1B begins with."""
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    schedule = []
    for rank in range(ranks):
        ahead, late = times * (ranks - rank - 1), times * rank
        actions = [Action(FORWARD, rank, index) for index in range(min(ahead, micro_batches))]
        for index in range(micro_batches + late):
            if ahead + index < micro_batches:
                actions.append(Action(FORWARD, rank, ahead + index))
            if index < micro_batches:
                actions.append(Action(INPUT, rank, index))
            if index >= late:
                actions.append(Action(WEIGHT, rank, index - late))
        schedule.append(actions)
    return schedule

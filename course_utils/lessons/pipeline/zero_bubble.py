"""Schedules that cut the backward pass in two, and fill the bubble with the half that no other rank is waiting for.

The stage before waits for the gradient of a stage's input (I). The gradient of its weights (W) is needed only when the
optimizer takes its step, so it can wait until the rank would otherwise be idle.
"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action, Schedule, whole_number


def zb_h1_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return ZB-H1, which is 1F1B with W put off; no rank keeps more than P micro-batches.

    Rank r begins with P − r − 1 forward passes, as in 1F1B. Then it does F, I and W in turn, where W is that of r
    micro-batches before. So the gradients reach rank 0 without having to wait for any W, and the W that are late fill
    the end.

    The bubble of each rank is (P − 1)(F + I − W) instead of (P − 1)(F + I + W), which is a third of it if F, I and W
    take equally long.

    Args:
        ranks: P, which is also the number of stages.
        micro_batches: m.

    Source: Qi et al. 2023, "Zero Bubble Pipeline Parallelism", §2.1 and table 1.
    """
    return _put_off(ranks, micro_batches, 1)


def zb_h2_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return ZB-H2, in which no rank pauses between its first action and its last, for nearly twice the memory.

    Rank r begins with 2(P − r − 1) forward passes, and its W comes 2r micro-batches late, so each rank keeps 2P − 1. If
    F, I and W take equally long, every rank works without a gap. The last rank still starts and ends P − 1 passes
    after the first. So a single batch takes as long as with ZB-H1, and time is only gained if each rank begins with
    the next batch without waiting for the others before its optimizer step.

    Args:
        ranks: P, which is also the number of stages.
        micro_batches: m, at least 2P − 1 for the bubble to vanish.

    Source: Qi et al. 2023, §2.2, §4 and table 1: (P − 1)(F + I − 2W).
    """
    return _put_off(ranks, micro_batches, 2)


def _put_off(ranks: int, micro_batches: int, times: int) -> Schedule:
    """Do F, I and W in turn on each rank, after `times` as many forward passes as 1F1B begins with."""
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

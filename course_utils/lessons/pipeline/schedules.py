"""The two schedules that every pipeline starts from: all forward and then all backward, or one of each in turn."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, Schedule, whole_number


def gpipe_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return GPipe's schedule: each rank does all forward passes, then all backward passes.

    Rank r holds stage r. Both kinds of passes come in the order of the micro-batches, from 0 on.
    Each rank keeps all micro-batches in memory at once.

    Args:
        ranks: P, which is also the number of stages.
        micro_batches: m.

    Returns:
        For each rank its 2 m actions, in order.

    Source: Huang et al. 2019, "GPipe", §2.2 and figure 2c.
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    schedule = []
    for rank in range(ranks):
        forward = [Action(FORWARD, rank, index) for index in range(micro_batches)]
        backward = [Action(BACKWARD, rank, index) for index in range(micro_batches)]
        schedule.append(forward + backward)
    return schedule


def one_f_one_b_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return the schedule 1F1B: a few forward passes, then one forward and one backward in turn.

    Rank r holds stage r and begins with P − r − 1 forward passes, one for each rank after it,
    because that is how long the first gradient takes to come back. Then a forward pass and a
    backward pass follow each other, both in the order of the micro-batches. In the end come the
    backward passes that are left. Rank r keeps at most P − r micro-batches, and on paper the
    batch takes as long as with GPipe.

    Args:
        ranks: P, which is also the number of stages.
        micro_batches: m; there may be fewer than P.

    Returns:
        For each rank its 2 m actions, in order.

    Source: Narayanan et al. 2019, "PipeDream", §3.2; with the flush at the end of a batch
    Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", §2.2.1 and figure 4.
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    schedule = []
    for rank in range(ranks):
        # Forward passes fill the time until the first gradient comes back.
        ahead = min(ranks - rank - 1, micro_batches)
        actions = [Action(FORWARD, rank, index) for index in range(ahead)]
        for index in range(micro_batches):
            # Then one forward pass for each backward pass, as long as there are micro-batches left.
            if ahead + index < micro_batches:
                actions.append(Action(FORWARD, rank, ahead + index))
            actions.append(Action(BACKWARD, rank, index))
        schedule.append(actions)
    return schedule


def bubble_fraction(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the share of the time, from 0 to 1, in which a rank of a pipeline is idle on paper.

    All stages take equally long, and messages take no time. With GPipe and 1F1B, a rank works
    for m passes, forward and backward together, and waits for as long as P − 1 of them take.
    In an interleaved schedule, what it waits for are passes through one of its v chunks, which
    take only 1/v of the time.

    Args:
        ranks: P.
        micro_batches: m.
        chunks: v, the number of stages on each rank; more than 1 if the schedule is interleaved.

    Source: Huang et al. 2019, §2.3; Narayanan et al. 2021, §2.2.2, where the bubble is a share
    of the working time instead: (P − 1) / (v m).
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    whole_number("chunks", chunks)
    return (ranks - 1) / (chunks * micro_batches + ranks - 1)

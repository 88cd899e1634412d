"""The two schedules that every pipeline starts from: all forward and then all backward, or one of each in turn."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, Schedule, whole_number


def gpipe_schedule(ranks: int, micro_batches: int) -> Schedule:
    """All forward passes, then all backward passes; every micro-batch is in memory at once.

    Rank r holds stage r. The backward passes come in the same order as the forward ones.

    Args:
        ranks: P, the stages too.
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
    """After a few forward passes one forward and one backward pass in turn: less in memory.

    Rank r begins with P − r − 1 forward passes, as many as there are ranks behind it: so long
    the first gradient takes to come back. Then each new forward pass is followed by the oldest
    backward pass, which frees its activations: rank r keeps P − r at most. No slower than GPipe.

    Args:
        ranks: P, the stages too.
        micro_batches: m; may be fewer than P.

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
        # As long as the first gradient is on its way back: forward passes fill the time.
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
    """The share of the time in which a rank of a GPipe or 1F1B pipeline has nothing to do.

    With equal stages and free messages a rank waits for P − 1 forward and backward passes of
    other stages, and works for m of its own. With v chunks on each rank (interleaved) the
    passes that it waits for are v times as short.

    Args:
        ranks: P.
        micro_batches: m.
        chunks: v, the stages on each rank; above 1 for the interleaved schedule.

    Source: Huang et al. 2019, §2.3; Narayanan et al. 2021, §2.2.2, which gives the bubble as a
    share of the time without bubble instead: (P − 1) / (v m).
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    whole_number("chunks", chunks)
    return (ranks - 1) / (chunks * micro_batches + ranks - 1)

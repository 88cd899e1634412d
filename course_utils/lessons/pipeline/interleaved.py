"""Several short stages on each rank: the pipeline fills faster, for more messages."""

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, Schedule, whole_number


def interleaved_schedule(ranks: int, micro_batches: int, chunks: int = 2) -> Schedule:
    """1F1B with v stages on each rank: the bubble shrinks v times, the messages become v times as many.

    Rank r holds the stages r, r + P, r + 2P, … Micro-batches go in groups of P: a rank does its first stage on all of a
    group, then its second stage on them, and so on; backward the same from the last stage to the first.

    Args:
        ranks: P.
        micro_batches: m, a multiple of P.
        chunks: v, stages on each rank; with 1 it is 1F1B.

    Returns:
        For each rank its 2 v m actions, in order.

    Raises:
        CourseError: m is not a multiple of P.

    Source: Narayanan et al. 2021, §2.2.2 and figure 4; the order is that of Megatron-LM.
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    whole_number("chunks", chunks)
    if micro_batches % ranks:
        raise CourseError(
            f"{micro_batches} micro-batches are not a multiple of {ranks} ranks. "
            f"The interleaved schedule takes them in groups of {ranks}."
        )
    total = chunks * micro_batches

    def action(kind: str, rank: int, number: int) -> Action:
        # The number of a pass among this rank's says which:
        # groups of P micro-batches, and in each group chunk by chunk.
        group, position = divmod(number, ranks * chunks)
        chunk, member = divmod(position, ranks)
        if kind == BACKWARD:
            chunk = chunks - 1 - chunk
        return Action(kind, chunk * ranks + rank, group * ranks + member)

    schedule = []
    for rank in range(ranks):
        # Two passes for each rank behind, because the others' passes come in between,
        # and P for each further chunk.
        behind = ranks - rank - 1
        ahead = min(total, behind if chunks == 1 else 2 * behind + (chunks - 1) * ranks)
        actions = [action(FORWARD, rank, number) for number in range(ahead)]
        for number in range(total):
            if ahead + number < total:
                actions.append(action(FORWARD, rank, ahead + number))
            actions.append(action(BACKWARD, rank, number))
        schedule.append(actions)
    return schedule

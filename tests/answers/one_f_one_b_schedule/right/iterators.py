"""Two iterators for each rank."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    result = []
    for rank in range(ranks):
        forwards = iter([Action(FORWARD, rank, k) for k in range(micro_batches)])
        mine = [one for _, one in zip(range(ranks - rank - 1), forwards)]
        for k in range(micro_batches):
            following = next(forwards, None)
            mine += [following] if following else []
            mine.append(Action(BACKWARD, rank, k))
        result.append(mine)
    return result

"""A rank goes forward while it keeps fewer than P - r."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = [[] for _ in range(ranks)]
    for rank, actions in enumerate(schedule):
        forward = backward = 0
        while backward < micro_batches:
            if forward < micro_batches and forward - backward < ranks - rank:
                actions.append(Action(FORWARD, rank, forward))
                forward += 1
            else:
                actions.append(Action(BACKWARD, rank, backward))
                backward += 1
    return schedule

"""Refused with: From which number are micro-batches counted?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, micro_batches)
        actions = [Action(FORWARD, rank, index) for index in range(1, ahead + 1)]
        for index in range(1, micro_batches + 1):
            if ahead + index <= micro_batches:
                actions.append(Action(FORWARD, rank, ahead + index))
            actions.append(Action(BACKWARD, rank, index))
        schedule.append(actions)
    return schedule

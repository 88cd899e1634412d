"""Refused with: Does the last rank wait as long for its first gradient as the first rank?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - 1, micro_batches)
        actions = [Action(FORWARD, rank, index) for index in range(ahead)]
        for index in range(micro_batches):
            if ahead + index < micro_batches:
                actions.append(Action(FORWARD, rank, ahead + index))
            actions.append(Action(BACKWARD, rank, index))
        schedule.append(actions)
    return schedule

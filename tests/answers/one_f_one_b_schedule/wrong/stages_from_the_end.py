"""Refused with: Which stage lies on rank r?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        stage = ranks - rank - 1
        ahead = min(rank, micro_batches)
        actions = [Action(FORWARD, stage, index) for index in range(ahead)]
        for index in range(micro_batches):
            if ahead + index < micro_batches:
                actions.append(Action(FORWARD, stage, ahead + index))
            actions.append(Action(BACKWARD, stage, index))
        schedule.append(actions)
    return schedule

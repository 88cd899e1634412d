"""Refused with: What comes before the first backward pass in GPipe?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        actions = []
        for index in range(micro_batches):
            actions += [Action(FORWARD, rank, index), Action(BACKWARD, rank, index)]
        schedule.append(actions)
    return schedule

"""Refused with: Is it one list, or one for each rank?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        schedule += [Action(FORWARD, rank, index) for index in range(micro_batches)]
        schedule += [Action(BACKWARD, rank, index) for index in range(micro_batches)]
    return schedule

"""Refused with: Which kind is the whole backward pass?"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        forward = [Action(FORWARD, rank, index) for index in range(micro_batches)]
        backward = [Action(kind, rank, index) for index in range(micro_batches) for kind in (INPUT, WEIGHT)]
        schedule.append(forward + backward)
    return schedule

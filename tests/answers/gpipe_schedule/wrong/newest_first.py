"""Refused with: In which order do the backward passes come?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        forward = [Action(FORWARD, rank, index) for index in range(micro_batches)]
        backward = [Action(BACKWARD, rank, index) for index in reversed(range(micro_batches))]
        schedule.append(forward + backward)
    return schedule

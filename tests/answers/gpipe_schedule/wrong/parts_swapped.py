"""Refused with: Of what are the lists made, and in which order does an Action take its three parts?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        forward = [Action(rank, FORWARD, index) for index in range(micro_batches)]
        backward = [Action(rank, BACKWARD, index) for index in range(micro_batches)]
        schedule.append(forward + backward)
    return schedule

"""Refused with: How many micro-batches are there, and does each go forward and back?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    numbers = range(micro_batches - 1)
    return [[Action(kind, rank, index) for kind in (FORWARD, BACKWARD) for index in numbers] for rank in range(ranks)]

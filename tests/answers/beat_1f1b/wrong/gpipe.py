"""Refused with: How many micro-batches may this rank keep, and which action sets one free?"""

from course_utils.lessons.pipeline.schedules import gpipe_schedule


def beat_1f1b(puzzle):
    return gpipe_schedule(puzzle.ranks, puzzle.micro_batches)

"""Refused with: For which half of a backward pass does nobody wait?"""

from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule


def beat_1f1b(puzzle):
    return one_f_one_b_schedule(puzzle.ranks, puzzle.micro_batches)

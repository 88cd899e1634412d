"""Refused with: Does the function return the schedule?"""

from course_utils.lessons.pipeline.actions import write_schedule
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule


def beat_1f1b(puzzle):
    print(write_schedule(zb_h1_schedule(puzzle.ranks, puzzle.micro_batches)))

"""Refused with: Of what are the lists made, and in which order does an Action take its three parts?"""

from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule


def beat_1f1b(puzzle):
    return [[str(action) for action in actions] for actions in zb_h1_schedule(puzzle.ranks, puzzle.micro_batches)]

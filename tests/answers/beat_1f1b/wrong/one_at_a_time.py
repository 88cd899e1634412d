"""Refused with: Where in the picture does a rank wait, and for what?"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action


def beat_1f1b(puzzle):
    return [
        [Action(kind, rank, k) for k in range(puzzle.micro_batches) for kind in (FORWARD, INPUT, WEIGHT)]
        for rank in range(puzzle.ranks)
    ]

"""The check of `rank_squared`: on each rank the square of its own number."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import nothing_returned
from course_utils.lessons.first_steps.checks.common import all_listed, world_sizes
from course_utils.words import ranks


def _squares(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in world_sizes(world_size):
        squares = [sum(2 * n + 1 for n in range(rank)) for rank in range(size)]  # the sum of the first odd numbers
        yield Case(ranks(size), [()] * size, squares)


def _printed(case: Case, outcome: Outcome) -> bool:
    return nothing_returned(case, outcome) and any(reply.output for reply in outcome.attempt.replies)


EXERCISE = Exercise(
    library="rank_and_size",
    number=1,
    minutes=3,
    difficulty=1,
    turn="return the square of this rank's own number",
    title="every rank returns its square",
    cases=_squares,
    hints=(
        "All ranks run the same line. Which value in it is different on each of them?",
        "The number of the rank is `comm.rank`. Square it, and return the result.",
    ),
    symptoms={
        "it is printed and not returned": _printed,
        "each rank returns a number for every rank": all_listed,
    },
    praise=lambda outcome: "each rank returned the square of its own number",
)

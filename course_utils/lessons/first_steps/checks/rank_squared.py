"""The check of `rank_squared`: on each rank the square of its own number."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import nothing_returned, raised
from course_utils.lessons.first_steps.checks import LESSON
from course_utils.lessons.first_steps.checks.common import all_are, are_lists, only_some_returned, world_sizes
from course_utils.words import ranks


def _squares(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in world_sizes(world_size):
        squares = [sum(2 * n + 1 for n in range(rank)) for rank in range(size)]  # the sum of the first odd numbers
        yield Case(ranks(size), [()] * size, squares)


def _numbers(formula) -> object:
    """A recogniser of results that follow a formula of (rank, world size)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return all_are(outcome, [formula(rank, outcome.world_size) for rank in range(outcome.world_size)])

    return recognises


def _all_of(kind: type) -> object:
    """A recogniser of results that are all of one type."""
    return lambda case, outcome: all(type(result) is kind for result in outcome.results)


def _printed(case: Case, outcome: Outcome) -> bool:
    return nothing_returned(case, outcome) and any(reply.output for reply in outcome.attempt.replies)


RANK_SQUARED = Exercise(
    name="rank_squared",
    library="course_utils.lessons.first_steps.rank_and_size:rank_squared",
    lesson=LESSON,
    place=1,
    minutes=3,
    difficulty=1,
    turn="return the square of this rank's own number",
    title="every rank returns its square",
    cases=_squares,
    hints=(
        "Every rank runs the same line. Which value in it is different on each?",
        "`comm.rank` is this rank's number. Square it, and hand it back with `return`.",
    ),
    mistakes=(
        Mistake("Which object knows this rank's number?", lambda case, outcome: raised(outcome, "NameError")),
        Mistake("It was printed, but was it returned?", _printed),
        Mistake("Is there a `return` that every rank reaches?", nothing_returned),
        Mistake("Is there a `return` that every rank reaches?", only_some_returned),
        Mistake("In Python, is `^` a power?", _numbers(lambda rank, size: rank ^ 2)),
        Mistake("Which of the two is squared: 2, or the rank?", _numbers(lambda rank, size: 2**rank)),
        Mistake("Was it doubled where it should be squared?", _numbers(lambda rank, size: 2 * rank)),
        Mistake("Do ranks count from 0 or from 1?", _numbers(lambda rank, size: (rank + 1) ** 2)),
        Mistake("Is that the rank, or how many ranks there are?", _numbers(lambda rank, size: size**2)),
        Mistake("Was the rank squared?", _numbers(lambda rank, size: rank)),
        Mistake("Is this rank's own square asked for, or all of them?", lambda case, outcome: are_lists(outcome)),
        Mistake("Should the result be a number or a text?", _all_of(str)),
        Mistake("Is the square of a whole number a whole number?", _all_of(float)),
    ),
    praise=lambda outcome: "each rank returned the square of its own number",
    picture=False,
)

"""What the checks of lesson 8 share: words for what is seen in an outcome, and recognisers that fit several of them."""

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.recognisers import Recogniser, arguments_are

LEAST = 4  # with fewer ranks the mistakes do not show: cases for so many are made, and left out where they do not fit
HEADERS = 1024  # bytes that a pickle may add to its numbers

Formula = Callable[[Case], Sequence[np.ndarray]]
"""A case → what a mistake leaves in the first argument of each rank."""


def leaves(formula: Formula) -> Recogniser:
    """A recogniser of a wrong result by what it leaves on all ranks; with one rank most mistakes look alike."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return several_returned(outcome) and arguments_are(outcome, 0, formula(case))

    return recognises


def changed(index: int) -> Recogniser:
    """A recogniser of an argument that was to stay as it is, and did not on some rank."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return not arguments_are(outcome, index, [arguments[index] for arguments in case.arguments])

    return recognises


def several_returned(outcome: Outcome) -> bool:
    """Whether there is more than one rank, and every one came to its end."""
    return outcome.world_size > 1 and outcome.run is not None


def right(case: Case, outcome: Outcome) -> bool:
    """Whether the first argument is right on every rank after the call, whatever it has cost."""
    return arguments_are(outcome, 0, [wanted[0] for wanted in case.expected_arguments])


def names(outcome: Outcome) -> set[str]:
    """The calls that were made, in small letters."""
    return {event.name.lower() for reply in outcome.attempt.replies for event in reply.events or ()}

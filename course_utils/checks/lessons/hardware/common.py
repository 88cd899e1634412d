"""What the checks of lesson 3 share: the stem, formulas that a wrong answer follows, and the packed file's form."""

import struct
from collections.abc import Callable, Sequence

from course_utils.checks.compare import difference
from course_utils.checks.exercise import NO_RESULT, Case, Outcome

LESSON = "03_hardware"
Recogniser = Callable[[Case, Outcome], bool]


def same(got: object, wanted: object, tolerance: float | None = None) -> bool:
    """Whether a result is what is wanted; never asks a learner's object."""
    return got is not NO_RESULT and difference(0, got, wanted, tolerance) is None


def raised(outcome: Outcome, words: str = "") -> bool:
    """Whether a rank raised an error whose type or text has these words in it."""
    errors = [reply.error for reply in outcome.attempt.replies if reply.error]
    return any(words.lower() in f"{error.type} {error.message}".lower() for error in errors)


def offsets_of(samples: Sequence[bytes]) -> list[int]:
    """Where each sample begins in a packed file, and where the last one ends."""
    places = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        places.append(places[-1] + len(sample))
    return places


def packed(samples: Sequence[bytes]) -> bytes:
    """The bytes of a packed file, put together without the library."""
    places = offsets_of(samples)
    head = b"".join(struct.pack("<Q", number) for number in (len(samples), *places))
    return head + b"".join(samples)

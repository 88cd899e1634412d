"""What the checks of lesson 8 share: findings about the messages of a run, which no result shows."""

from dataclasses import replace

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call
from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own

LEAST = 4  # with fewer ranks the mistakes do not show: cases for this many are made, and left out where they do not fit
HEADERS = 1024  # bytes that a pickle may add to its numbers


def after_a_different_call(before: Case, case: Case) -> Case:
    """Return a case whose function was called before with the arguments of `before`: other lengths, rates, numbers."""
    again = after_another_call(case, before.arguments)
    return replace(again, label=f"{case.label}, after a call with a longer vector", key=AFTER_ANOTHER_CALL)


def called(outcome: Outcome, *names: str) -> bool:
    """Return whether a call was made whose name, in small letters, contains one of these names."""
    made = {event.name.lower() for reply in outcome.attempt.replies for event in reply.events or ()}
    return any(name in text for text in made for name in names)


def weights_once(outcome: Outcome) -> Finding | None:
    """Find what no result shows: more bytes than the weights have, or weights of single ranks."""
    return sums_alone(outcome, outcome.case.arguments[0][0].nbytes)


def sums_alone(outcome: Outcome, enough: int, what: str = "weights are") -> Finding | None:
    """Find what no result shows: numbers of single ranks that reached others, or more bytes contributed than needed.

    A pickle may be a little longer than its numbers.
    """
    if called(outcome, "gather", "alltoall"):
        return own("gathered", f"the {what} right, but every rank was sent the weights of all others")
    for rank, reply in enumerate(outcome.attempt.replies):
        put_in, pickled = outcome.run.bytes_per_rank[rank], any(event.name.islower() for event in reply.events or ())
        if put_in > enough + HEADERS * pickled:
            words = f"the {what} right, but rank {{rank}} contributed {{got:,}} bytes; {{expected:,}} are enough"
            return own("needless-bytes", words, rank=rank, got=put_in, expected=enough)
    return None

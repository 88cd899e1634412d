"""Mistakes that are made in every all-reduce, and how an outcome shows them. An exercise takes those that fit it."""

from collections.abc import Callable

import numpy as np

from course_utils.checks.exercise import Case, Mistake, Outcome
from course_utils.checks.recognisers import hangs, raised, uses_collectives, waits_in
from course_utils.lessons.allreduce.checks.common import (
    LEAST,
    UNEQUAL,
    after,
    from_anybody,
    haste,
    op_of,
    right_places,
    times_added,
    vectors_of,
)
from course_utils.lessons.allreduce.checks.strict import CHANGED, TAKEN


def _returned(outcome: Outcome) -> bool:
    return all(reply.kind == "returned" for reply in outcome.attempt.replies)


def _result_is_right(outcome: Outcome) -> bool:
    return _returned(outcome) and bool(right_places(outcome).all())


def _hasty(words: str) -> Callable[[Case, Outcome], bool]:
    """A recogniser of what a strict communicator has seen."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return any(what.startswith(words) for rank in range(outcome.world_size) for what in haste(outcome, rank))

    return recognises


def _used_before_it_came(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool(np.isnan(after(outcome)).any())


def _open_requests(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and not all(reply.clean for reply in outcome.attempt.replies)


def _only_barriers(case: Case, outcome: Outcome) -> bool:
    events = [event for reply in outcome.attempt.replies for event in reply.events if event.kind == "collective"]
    return _result_is_right(outcome) and all("barrier" in event.name.lower() for event in events) and bool(events)


def _all_send(case: Case, outcome: Outcome) -> bool:
    return hangs(case, outcome) and waits_in(outcome, "send")


def _no_power_of_two(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size & (outcome.world_size - 1) != 0


def _another_dtype(case: Case, outcome: Outcome) -> bool:
    before = vectors_of(case)
    return before.dtype != np.float64 and outcome.world_size >= LEAST and 100 < before.shape[1] < 2000


def _not_divisible(case: Case, outcome: Outcome) -> bool:
    return vectors_of(case).shape[1] % outcome.world_size != 0


def _elsewhere(case: Case, outcome: Outcome) -> bool:
    """Wrong numbers in a length that P divides, after the first case, where all places look alike, was right."""
    before = vectors_of(case)
    plain = before.dtype == np.float64 and op_of(case) is None and not _not_divisible(case, outcome)
    alike = (before == before[:, :1]).all()
    return plain and not alike and _returned(outcome) and not _result_is_right(outcome)


def _pickled(case: Case, outcome: Outcome) -> bool:
    names = [event.name for reply in outcome.attempt.replies for event in reply.events if event.kind == "send"]
    return _result_is_right(outcome) and any(name[0].islower() for name in names)


def _too_many_bytes(case: Case, outcome: Outcome) -> bool:
    return _result_is_right(outcome) and max(outcome.run.bytes_per_rank) > case.cost.bytes_per_rank


def _too_many_rounds(case: Case, outcome: Outcome) -> bool:
    return _result_is_right(outcome) and outcome.run.rounds > case.cost.rounds


def _unchanged(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size > 1 and _returned(outcome) and np.array_equal(vectors_of(case), after(outcome))


def _mean(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size > 1 and np.allclose(after(outcome) * outcome.world_size, case.expected_arguments[0][0])


def _on_rank_0_only(case: Case, outcome: Outcome) -> bool:
    right = right_places(outcome)
    return bool(right[0].all()) and not right[1:].all(axis=1).any()


def _blocks_apart(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size > 1 and bool((right_places(outcome).sum(axis=0) == 1).all())


def _twice(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool((times_added(outcome) > 1).any())


def _unequal(case: Case, outcome: Outcome) -> bool:
    return UNEQUAL in outcome.wrong or _result_is_right(outcome) and len({row.tobytes() for row in after(outcome)}) > 1


def _missing(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool((times_added(outcome) == 0).any())


ANYBODYS_MESSAGE = Mistake("Whose message does your receive take?", from_anybody)
CHANGED_WHILE_SENT = Mistake("Do you write into numbers that may still be on their way?", _hasty(CHANGED))
ONE_PLACE = Mistake("Has every message on its way a place of its own?", _hasty(TAKEN))
USED_TOO_EARLY = Mistake("Do you use numbers that a receive may still be writing?", _used_before_it_came)
OPEN_REQUEST = Mistake("When is a message of Isend or Irecv finished?", _open_requests)
BARRIER = Mistake("Which message would go wrong without the barrier?", _only_barriers)
COLLECTIVE = Mistake("Can you do it with messages from one rank to another alone?", uses_collectives)
ALL_SEND = Mistake("Who receives while all of you send?", _all_send)
POWER_OF_TWO = Mistake("Who is left over when P is not a power of two?", _no_power_of_two)
ENDLESS = Mistake("Does the loop come to an end?", lambda case, outcome: raised(outcome, "and no end"))
NO_SUCH_RANK = Mistake(
    "Who sits to the right of the last rank?", lambda case, outcome: raised(outcome, "there is no rank")
)
NOBODY_SENDS = Mistake("Who sends the message that is waited for?", hangs)
ELSEWHERE = Mistake("Do the numbers that you add stand at the same place of the vector?", _elsewhere)
OPERATION = Mistake("Which operation did the caller ask for?", lambda case, outcome: op_of(case) is not None)
DTYPE = Mistake("What dtype has the place for what arrives?", _another_dtype)
NOT_DIVISIBLE = Mistake("Where are the numbers that are left over when P does not divide the length?", _not_divisible)
IN_PLACE = Mistake("Did the result arrive in the vector that you were given?", _unchanged)
MEAN = Mistake("Sum or mean?", _mean)
RANK_0_ONLY = Mistake("How do the other ranks hear of the result?", _on_rank_0_only)
BLOCKS_APART = Mistake("Every rank has finished one block. Who needs it?", _blocks_apart)
TWICE = Mistake("Whose number is in the sum more than once?", _twice)
MISSING = Mistake("Whose number is not in the sum?", _missing)
ORDER = Mistake("Do all ranks add in the same order?", _unequal)
PICKLED = Mistake("What travels besides the numbers when you send a pickle?", _pickled)
TOO_MANY_BYTES = Mistake("How much of the vector does the other side need in this step?", _too_many_bytes)
TOO_MANY_ROUNDS = Mistake("Which of these messages could travel at the same time?", _too_many_rounds)

"""How mistakes that are made in every all-reduce show in an outcome, whichever program makes them."""

from pathlib import Path

import numpy as np

from course_utils.checks.exercise import Case, Outcome, Recogniser
from course_utils.checks.finding import RESULT_KINDS, Kind
from course_utils.checks.sample_answers import SUFFIX
from course_utils.lessons.allreduce.checks.common import POWERS_OF_TEN, haste, watched
from course_utils.lessons.allreduce.checks.strict import CHANGED, TAKEN


def spoken_of(check: str) -> dict[str, Recogniser]:
    """Those of `SYMPTOMS` that the file beside a check's module speaks of."""
    file = Path(check).with_suffix(SUFFIX)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {name: test for name, test in SYMPTOMS.items() if f"Recognised when {name}." in text}


def before(case: Case) -> np.ndarray:
    """The vectors of all ranks before the call, as rows."""
    return np.stack([arguments[0] for arguments in case.arguments])


def after(outcome: Outcome) -> np.ndarray:
    """The vectors of all ranks after the call, as rows."""
    return np.stack([arguments[0] for arguments in outcome.arguments])


def right_places(outcome: Outcome) -> np.ndarray:
    """For each rank and index, whether the number there is the right one."""
    expected = outcome.case.expected_arguments[0][0]
    return np.isclose(after(outcome), expected, rtol=1e-4)


def times_added(outcome: Outcome) -> np.ndarray:
    """For each rank, index and source, how often the source's number is in the sum: the digits of the first case.

    Raises:
        ValueError: the numbers are not such sums, or the case is another one.
    """
    given, now = before(outcome.case), after(outcome)
    powers = 10.0 ** np.arange(outcome.world_size)
    whole = np.isfinite(now).all() and (now == np.floor(now)).all() and (now >= 0).all() and (now < 1e15).all()
    if given.dtype != np.float64 or not given.size or not (given == powers[:, None]).all() or not whole:
        raise ValueError("these are not sums of powers of ten")
    digits = now.astype(np.int64)[:, :, None] // powers.astype(np.int64) % 10
    if not (digits @ powers == now).all():
        raise ValueError("a digit is larger than 9")
    return digits


def _returned(outcome: Outcome) -> bool:
    return all(reply.kind == "returned" for reply in outcome.attempt.replies)


def _right(outcome: Outcome) -> bool:
    return _returned(outcome) and bool(right_places(outcome).all())


def _hasty(kind: str) -> Recogniser:
    """A recogniser of what a strict communicator has seen."""
    return lambda case, outcome: any(
        seen == kind for rank in range(outcome.world_size) for seen, _ in haste(outcome, rank)
    )


def _from_anybody(case: Case, outcome: Outcome) -> bool:
    return any(watched(outcome, rank)[2] for rank in range(outcome.world_size))


def _used_before_it_came(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool(np.isnan(after(outcome)).any())


def _received_over_the_vector(case: Case, outcome: Outcome) -> bool:
    into_vector = any(watched(outcome, rank)[3] for rank in range(outcome.world_size))
    return into_vector and _used_before_it_came(case, outcome)


def _only_barriers(case: Case, outcome: Outcome) -> bool:
    calls = [event.name.lower() for event in outcome.run.events if event.kind == "collective"]
    return _right(outcome) and bool(calls) and all("barrier" in name for name in calls)


def _lucky(outcome: Outcome) -> bool:
    """Whether the result is right, and something else is wrong that has nothing to do with the numbers."""
    return outcome.finding is not None and outcome.finding.kind == Kind.BY_LUCK


def _no_power_of_two(case: Case, outcome: Outcome) -> bool:
    return not _lucky(outcome) and outcome.world_size & (outcome.world_size - 1) != 0


def _not_divisible(case: Case, outcome: Outcome) -> bool:
    return not _lucky(outcome) and before(case).shape[1] % outcome.world_size != 0


def _short(case: Case, outcome: Outcome) -> bool:
    return not _lucky(outcome) and before(case).shape[1] < outcome.world_size


def _elsewhere(case: Case, outcome: Outcome) -> bool:
    """Wrong numbers in a length that P divides, after the first case, where all places look alike, was right."""
    given = before(case)
    alike = (given == given[:, :1]).all()
    return _returned(outcome) and not _right(outcome) and not _not_divisible(case, outcome) and not alike


def _pickled(case: Case, outcome: Outcome) -> bool:
    return _right(outcome) and any(event.kind == "send" and event.name[0].islower() for event in outcome.run.events)


def _too_many_bytes(case: Case, outcome: Outcome) -> bool:
    return _right(outcome) and max(outcome.run.bytes_per_rank) > case.cost.bytes_per_rank


def _nearly(case: Case, outcome: Outcome) -> bool:
    """Wrong by no more than a shorter dtype would make it; in sums of powers of ten so little is a whole rank."""
    expected = case.expected_arguments[0][0]
    difference, largest = np.abs(after(outcome) - expected).max(), np.abs(expected).max()
    wrong = outcome.finding.kind in RESULT_KINDS
    return wrong and 0 < difference <= 2e-3 * largest and case.key != POWERS_OF_TEN


def _on_rank_0_only(case: Case, outcome: Outcome) -> bool:
    right = right_places(outcome)
    return bool(right[0].all()) and not right[1:].all(axis=1).any()


def _blocks_apart(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size > 1 and bool((right_places(outcome).sum(axis=0) == 1).all())


def _twice(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool((times_added(outcome) > 1).any())


def _missing(case: Case, outcome: Outcome) -> bool:
    return _returned(outcome) and bool((times_added(outcome) == 0).any())


SYMPTOMS: dict[str, Recogniser] = {
    "a receive takes whatever comes": _from_anybody,
    "numbers are changed while they are sent": _hasty(CHANGED),
    "two messages come into one place": _hasty(TAKEN),
    "a receive writes where numbers are still needed": _received_over_the_vector,
    "numbers are used before they came": _used_before_it_came,
    "barriers are the only collectives": _only_barriers,
    "P is not a power of two": _no_power_of_two,
    "P does not divide the length": _not_divisible,
    "there are fewer numbers than ranks": _short,
    "numbers of other places are added": _elsewhere,
    "the numbers are nearly right": _nearly,
    "a pickle travels": _pickled,
    "too many bytes travel": _too_many_bytes,
    "rank 0 alone has the result": _on_rank_0_only,
    "each place is right on one rank alone": _blocks_apart,
    "a number is added twice": _twice,
    "a number is missing": _missing,
}
"""Their names in an exercise's file: "Recognised when a number is missing."."""

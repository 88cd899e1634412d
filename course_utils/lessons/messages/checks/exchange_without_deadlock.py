"""The check of `exchange_without_deadlock`: the partner's vector, in one round, whatever the size."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import (
    arguments_are,
    completed,
    hangs,
    nothing_returned,
    results_are,
    uses_collectives,
    waits_in,
)
from course_utils.lessons.messages.checks import LESSON
from course_utils.lessons.messages.checks.common import (
    LEAST,
    WAITING,
    random_vector,
    takes_the_early_message,
    too_long,
    with_an_early_message,
)
from course_utils.words import count, ranks

LONG = 100_003  # 800 KB of float64: far more than MPI keeps for a receiver that is not there yet
NEVER_COMPLETED = "the result came, but a message of rank {rank} was never completed"


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, dtype: str = "float64", partner: Callable[[int, int], int] = _mirrored) -> Case:
        vectors = [random_vector(rng, length, dtype) for _ in range(size)]
        partners = [partner(rank, size) for rank in range(size)]
        label = f"{ranks(size)}, {count(length, f'{dtype} number')}"
        return Case(
            label,
            list(zip(vectors, partners)),
            [vectors[other] for other in partners],
            [{0: vector} for vector in vectors],
            cost=Cost(rounds=1, messages=size, collectives=0),
            judge=_all_completed,
        )

    yield case(world_size, 10)
    yield case(world_size, LONG)
    yield case(world_size, 1000, "float32")
    if world_size % 2 == 0:
        yield case(world_size, int(rng.integers(2, 100)), "int16", lambda rank, size: rank ^ 1)
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 1000)), str(rng.choice(["int64", "uint8", "complex128"])))
    yield case(world_size, 1, "float32")
    yield case(world_size, 0)
    early = case(world_size, 12)
    yield dataclasses.replace(early, label=early.label + WAITING, cost=None, judge=None, harness=with_an_early_message)
    yield case(world_size, LONG)


def _mirrored(rank: int, size: int) -> int:
    return size - 1 - rank  # the middle one of an odd number is its own partner


def _all_completed(outcome: Outcome) -> str | None:
    for rank, (_, partner) in enumerate(outcome.case.arguments):
        if partner != rank and not (completed(outcome, rank, "send") and completed(outcome, rank, "recv")):
            return NEVER_COMPLETED.format(rank=rank)
    return None


def _incomplete(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and _all_completed(outcome) is not None


def _list_returned(case: Case, outcome: Outcome) -> bool:
    return any(type(result) in (list, tuple, dict) for result in outcome.results)


def _other_dtype(case: Case, outcome: Outcome) -> bool:
    wanted = case.arguments[0][0].dtype
    return any(type(result) is np.ndarray and result.dtype != wanted for result in outcome.results)


def _other_length(case: Case, outcome: Outcome) -> bool:
    wanted = case.arguments[0][0].shape
    return any(type(result) is np.ndarray and result.shape != wanted for result in outcome.results)


def _own_changed(case: Case, outcome: Outcome) -> bool:
    return not arguments_are(outcome, 0, [vector for vector, _ in case.arguments])


def _own_returned(case: Case, outcome: Outcome) -> bool:
    return results_are(outcome, [vector for vector, _ in case.arguments])


def _strangers(case: Case, outcome: Outcome) -> bool:
    """Each result is the vector of somebody who is not the partner, on one rank at least."""
    vectors = [vector for vector, _ in case.arguments]
    known = all(any(np.array_equal(result, vector) for vector in vectors) for result in outcome.results)
    return known and not _own_returned(case, outcome) and "holds" in outcome.wrong


EXCHANGE = Exercise(
    name="exchange_without_deadlock",
    library="course_utils.lessons.messages.point_to_point:exchange_without_deadlock",
    lesson=LESSON,
    place=2,
    minutes=10,
    difficulty=2,
    turn="let both vectors travel at the same time",
    title="two ranks swap vectors at once",
    cases=_cases,
    hints=(
        "A call that waits is one too many before the other side can answer. Which call says where the partner's "
        "vector shall go, but does not wait for it?",
        "Make room with `np.empty_like(vector)`. Start `request = comm.Irecv(room, source=partner)`, then Send, "
        "then `request.Wait()`.",
    ),
    mistakes=(
        Mistake("Whose message does your receive take?", takes_the_early_message),
        Mistake("Who needs this vector besides your partner?", uses_collectives),
        Mistake("Is the place as long as the vector that arrives?", lambda case, outcome: too_long(outcome)),
        Mistake(
            "Does anybody receive while both of you send?",
            lambda case, outcome: hangs(case, outcome) and waits_in(outcome, "send"),
        ),
        Mistake(
            "Has anybody sent yet when both of you wait?",
            lambda case, outcome: hangs(case, outcome) and waits_in(outcome, "recv"),
        ),
        Mistake("Is `partner` the one you sent to and received from?", hangs),
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Do you return the vector itself?", _list_returned),
        Mistake("Has the place for the partner's vector the same dtype as the vector?", _other_dtype),
        Mistake("Is the place as long as the vector that arrives?", _other_length),
        Mistake("Which call says that the request is complete?", _incomplete),
        Mistake("Is your own vector still what it was?", _own_changed),
        Mistake("Is that your own vector?", _own_returned),
        Mistake("Is `partner` the one you sent to and received from?", _strangers),
        Mistake("Could both vectors travel at the same time?", lambda case, outcome: outcome.run.rounds > 1),
    ),
    praise=lambda outcome: f"{ranks(outcome.world_size)} swapped vectors of any size in {outcome.run.rounds} round",
)

"""The check of `exchange_without_deadlock`: the partner's vector, in one round, whatever the size."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import fewer, in_a_row
from course_utils.checks.compare import difference, kind_of
from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import completed
from course_utils.lessons.messages.checks.common import (
    DTYPES,
    HEADERS,
    LEAST,
    beside_another_sender,
    called_again,
    random_vector,
    turned_round,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

LONG = 100_003  # 800 KB of float64: far more than MPI keeps for a receiver that is not there yet


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(partners: Sequence[int], length: int, dtype: str = "float64") -> Case:
        size = len(partners)
        vectors = [random_vector(rng, length, dtype) for _ in range(size)]
        return Case(
            f"{ranks(size)}, {count(length, f'{dtype} number')}",
            list(zip(vectors, partners)),
            [vectors[other] for other in partners],
            cost=Cost(rounds=1, messages=size, bytes_per_rank=vectors[0].nbytes + HEADERS, collectives=0),
            tolerance=0.0,
            judge=_all_completed,
        )

    def drawn(size: int) -> list[int]:
        """Pairs drawn at random; where their number is odd, one is its own partner."""
        order, partners = rng.permutation(size).tolist(), list(range(size))
        for rank, other in zip(order[::2], order[1::2]):
            partners[rank], partners[other] = other, rank
        return partners

    mirrored = list(range(world_size))[::-1]
    yield case(mirrored, 10)
    yield case(mirrored, LONG)
    yield case(mirrored, 1000, "float32")
    for dtype in rng.permutation(DTYPES):
        yield case(drawn(world_size), int(rng.integers(2, 3000)), str(dtype))
    own_partners = case(range(world_size), 20)
    label = f"{own_partners.label}, each rank its own partner"
    yield dataclasses.replace(
        own_partners, label=label, key="own-partner", expected=None, harness=in_used_memory, judge=_copies
    )
    for size in fewer(world_size):
        yield case(drawn(size), int(rng.integers(2, 1000)), str(rng.choice(DTYPES)))
    yield case(mirrored, 1, "float32")
    yield case(mirrored, 0)
    yield dataclasses.replace(beside_another_sender(case(mirrored, 12)), judge=None)
    again = case(mirrored, 12)
    yield called_again(again, [turned_round(theirs) for theirs in again.expected])
    yield in_a_row(case(mirrored, 12, "float32"), case(mirrored, 12))
    yield in_a_row(case(mirrored, 40), case(drawn(world_size), 30))
    yield case(mirrored, LONG)


def in_used_memory(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray, partner: int) -> tuple:
    """Call the learner's function where a new array holds something else than the vector, by chance, which it may.

    Returns what it returned, and whether that is in the vector's own memory.
    """
    used = [np.full_like(vector, 777) for _ in range(16)]
    del used
    found = function(comm, vector, partner)
    return found, kind_of(found) == "array" and np.shares_memory(found, vector)


def _copies(outcome: Outcome) -> Finding | None:
    """What is wrong where each rank is its own partner and gets a copy."""
    for rank, (found, is_shared) in enumerate(outcome.results):
        if wrong := difference(rank, found, outcome.case.arguments[rank][0], 0.0):
            return wrong
        if is_shared:
            words = "{who} returned its own array, and not a copy: whoever changes one changes both"
            return own("its-own-array", words, rank=rank)
    return None


def _all_completed(outcome: Outcome) -> Finding | None:
    for rank, (_, partner) in enumerate(outcome.case.arguments):
        if partner != rank and not (completed(outcome, rank, "send") and completed(outcome, rank, "recv")):
            return own(
                "never-completed", "the result arrived, but {who} did not complete one of its messages", rank=rank
            )
    return None


def _too_many_messages(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and outcome.run.messages > outcome.world_size


EXERCISE = Exercise(
    library="point_to_point",
    number=2,
    minutes=10,
    difficulty=2,
    turn="let both vectors travel at the same time",
    title="two ranks swap vectors at once",
    cases=_cases,
    hints=(
        "If both ranks begin with a call that waits, neither gets any further. Which call names the array for the "
        "partner's vector but does not wait until it has arrived?",
        "Make room with `incoming = np.empty_like(vector)`. Start `request = comm.Irecv(incoming, source=partner)`, "
        "then call `comm.Send(vector, dest=partner)`, and then `request.Wait()`. Return `incoming`.",
    ),
    symptoms={"there are more messages than vectors": _too_many_messages},
    praise=lambda outcome: f"{ranks(outcome.world_size)} swapped vectors of any size in {outcome.run.rounds} round",
)

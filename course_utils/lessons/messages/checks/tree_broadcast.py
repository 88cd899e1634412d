"""The check of `tree_broadcast`: the root's vector in every rank's array, in ⌈log₂ P⌉ rounds and P − 1 messages."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import NO_RESULT, Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Kind
from course_utils.checks.symptoms import completed
from course_utils.lessons.messages.checks.common import (
    CALLED_AGAIN,
    DTYPES,
    HEADERS,
    LEAST,
    OTHER_ROOT,
    beside_another_sender,
    in_two_calls,
    other_roots,
    random_vector,
    root_not_given,
    root_text,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, root: int, dtype: str = "float64") -> Case:
        vectors = [random_vector(rng, length, dtype) for _ in range(size)]
        rounds = (size - 1).bit_length()
        sent = rounds * (vectors[0].nbytes + HEADERS)
        odd = ", not a power of two" if size & (size - 1) and root == 0 else ""
        return Case(
            f"{ranks(size)}{odd}, {root_text(root)}, {count(length, f'{dtype} number')}",
            [(vector.copy(), root) for vector in vectors],
            expected_arguments=[{0: vectors[root]}] * size,
            tolerance=0.0,
            cost=Cost(rounds=rounds, messages=size - 1, bytes_per_rank=sent, collectives=0),
            key=OTHER_ROOT if root else "not-a-power-of-two" if odd else "",
        )

    yield case(world_size, 8, 0)
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 1000)), 0, "float32")
    for root in other_roots(rng, world_size):
        yield case(world_size, int(rng.integers(2, 1000)), root, "float32")
    for size in fewer(world_size):
        yield case(size, int(rng.integers(500, 3000)), size - 1, str(rng.choice(DTYPES)))
    for dtype in rng.permutation(DTYPES)[:4]:
        yield case(world_size, int(rng.integers(500, 3000)), int(rng.integers(world_size)), str(dtype))
    yield case(world_size, 1, world_size - 1)
    yield case(world_size, 0, 0)
    yield root_not_given(case(world_size, 9, 0))
    yield beside_another_sender(case(world_size, 12, 0))
    yield in_two_calls(case(world_size, 12, world_size - 1))
    again = case(world_size, 30, world_size - 1)
    label = f"{again.label}, after a longer vector of rank 0"
    yield dataclasses.replace(again, label=label, key=CALLED_AGAIN, cost=None, harness=after_a_longer_vector)
    yield case(world_size, 100_003, int(rng.integers(world_size)))


def after_a_longer_vector(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray, root: int) -> object:
    """Call the learner's function after a call with another root, another length and other numbers."""
    function(comm, np.arange(len(vector) + 20, dtype="float32") + comm.rank, 0)
    return function(comm, vector, root)


def _unchanged(outcome: Outcome) -> list[int]:
    """The ranks, other than the root, whose vector is still their own."""
    return [
        rank
        for rank, (vector, root) in enumerate(outcome.case.arguments)
        if rank != root and np.array_equal(outcome.arguments[rank][0], vector)
    ]


def _left_out(case: Case, outcome: Outcome) -> bool:
    all_returned = not any(result is NO_RESULT for result in outcome.results)
    return all_returned and any(completed(outcome, rank, "recv") == 0 for rank in _unchanged(outcome))


def _elsewhere(case: Case, outcome: Outcome) -> bool:
    return any(completed(outcome, rank, "recv") > 0 for rank in _unchanged(outcome))


def _not_a_power_of_two(case: Case, outcome: Outcome) -> bool:
    return case.key == "not-a-power-of-two" and outcome.finding.kind != Kind.ROUNDS


def _short_messages(case: Case, outcome: Outcome) -> bool:
    return outcome.run.bytes < (outcome.world_size - 1) * case.arguments[0][0].nbytes


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"the root's vector reached {ranks(size)} in {count(outcome.run.rounds, 'round')} and "
        f"{count(outcome.run.messages, 'message')}; a loop on the root would take {count(size - 1, 'round')}"
    )


EXERCISE = Exercise(
    library="broadcast_and_scatter",
    number=3,
    minutes=20,
    difficulty=3,
    turn="let every rank that has the vector send it on",
    title="one vector for all ranks in ⌈log₂ P⌉ rounds",
    cases=_cases,
    wrong_blocks=lambda frames, arguments: frames.not_from(arguments[1] if len(arguments) > 1 else 0),
    hints=(
        "Count the ranks from the root, which has distance 0. Which distances have the ranks that send in round k, and "
        "which distances have those that receive?",
        "Let distance = (rank − root) % P, and let step be 1, 2, 4, … as long as it is less than P. If distance < step "
        "and distance + step < P, the rank sends to (rank + step) % P. If step ≤ distance < 2 · step, it receives "
        "from (rank − step) % P.",
    ),
    symptoms={
        "P is not a power of two": _not_a_power_of_two,
        "a rank receives nothing": _left_out,
        "what is received goes elsewhere": _elsewhere,
        "messages are shorter than the vector": _short_messages,
    },
    praise=_praise,
)

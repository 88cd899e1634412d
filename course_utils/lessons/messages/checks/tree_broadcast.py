"""The check of `tree_broadcast`: the root's vector in everybody's array, in ⌈log₂ P⌉ rounds and P − 1 messages."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import arguments_are, completed, hangs, uses_collectives
from course_utils.lessons.messages.checks import LESSON
from course_utils.lessons.messages.checks.common import (
    LEAST,
    WAITING,
    other_roots,
    random_vector,
    takes_the_early_message,
    with_an_early_message,
)
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, root: int, dtype: str = "float64") -> Case:
        vectors = [random_vector(rng, length, dtype) for _ in range(size)]
        for rank, vector in enumerate(vectors):
            vector[:1] = rank  # no two alike
        label = f"{ranks(size)}, root {root}, {count(length, f'{dtype} number')}"
        cost = Cost(rounds=(size - 1).bit_length(), messages=size - 1, collectives=0)
        arguments = [(vector.copy(), root) for vector in vectors]
        return Case(label, arguments, expected_arguments=[{0: vectors[root]}] * size, cost=cost)

    yield case(world_size, 8, 0)
    for root in other_roots(rng, world_size):
        yield case(world_size, int(rng.integers(2, 1000)), root, "float32")
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 1000)), 0, str(rng.choice(["int64", "int16", "complex128"])))
        yield case(size, int(rng.integers(2, 1000)), size - 1, str(rng.choice(["float32", "int32"])))
    yield case(world_size, 1, world_size - 1)
    yield case(world_size, 0, 0)
    early = case(world_size, 12, 0)
    yield dataclasses.replace(early, label=early.label + WAITING, cost=None, harness=with_an_early_message)
    yield case(world_size, 100_003, int(rng.integers(world_size)))


def _root(case: Case) -> int:
    return case.arguments[0][1]


def _not_a_power(case: Case, outcome: Outcome) -> bool:
    size = outcome.world_size
    more = outcome.run is None or outcome.run.messages > size - 1
    return size & (size - 1) != 0 and more and _root(case) == 0


def _hangs_off_root_0(case: Case, outcome: Outcome) -> bool:
    return hangs(case, outcome) and _root(case) != 0


def _from_rank_0(case: Case, outcome: Outcome) -> bool:
    return _root(case) != 0 and arguments_are(outcome, 0, [case.arguments[0][0]] * outcome.world_size)


def _unchanged(case: Case, outcome: Outcome) -> list[int]:
    """The ranks, other than the root, whose vector is still their own."""
    return [
        rank
        for rank, (vector, root) in enumerate(case.arguments)
        if rank != root and np.array_equal(outcome.arguments[rank][0], vector)
    ]


def _left_out(case: Case, outcome: Outcome) -> bool:
    return any(completed(outcome, rank, "recv") == 0 for rank in _unchanged(case, outcome))


def _elsewhere(case: Case, outcome: Outcome) -> bool:
    return any(completed(outcome, rank, "recv") > 0 for rank in _unchanged(case, outcome))


def _short_messages(case: Case, outcome: Outcome) -> bool:
    return outcome.run.bytes < (outcome.world_size - 1) * case.arguments[0][0].nbytes


def _too_many_rounds(case: Case, outcome: Outcome) -> bool:
    return outcome.run.rounds > (outcome.world_size - 1).bit_length()


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"the root's vector reached {ranks(size)} in {count(outcome.run.rounds, 'round')} and "
        f"{count(outcome.run.messages, 'message')}; one after the other takes {count(size - 1, 'round')}"
    )


TREE_BROADCAST = Exercise(
    name="tree_broadcast",
    library="course_utils.lessons.messages.broadcast_and_scatter:tree_broadcast",
    lesson=LESSON,
    place=3,
    minutes=20,
    difficulty=3,
    turn="let every rank that has the vector pass it on",
    title="one vector to all in ⌈log₂ P⌉ rounds",
    cases=_cases,
    hints=(
        "After the first message two ranks hold the vector, after the second round four. Count the ranks from the "
        "root: at which distances are the holders of round k, and to which distance does each of them send?",
        "distance = (rank − root) % P, step = 1, 2, 4, … while step < P. Who has distance < step sends to the rank "
        "`step` further on, if there is one (distance + step < P). Who has step ≤ distance < 2 · step receives.",
    ),
    mistakes=(
        Mistake("Whose message does your receive take?", takes_the_early_message),
        Mistake("Can you do it with Send and Recv alone?", uses_collectives),
        Mistake("Is there a rank at that distance when P is not a power of two?", _not_a_power),
        Mistake("Do sender and receiver count from the same rank?", _hangs_off_root_0),
        Mistake("Who sends to this rank in this round?", hangs),
        Mistake("Does it begin at `root`?", _from_rank_0),
        Mistake("Was that the last round?", _left_out),
        Mistake("Did the vector arrive in the array that you were given?", _elsewhere),
        Mistake("Did the whole vector travel?", _short_messages),
        Mistake(
            "Does anybody receive the vector more than once?",
            lambda case, outcome: outcome.run.messages > outcome.world_size - 1,
        ),
        Mistake("Who else holds the vector after the first round?", _too_many_rounds),
    ),
    praise=_praise,
)

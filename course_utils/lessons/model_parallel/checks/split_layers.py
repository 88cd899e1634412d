"""The check of `split_layers`: the cheapest cut, found in another way than the library's."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call, rejected
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import raised
from course_utils.lessons.model_parallel.checks.cuts import Costs, by_filling, pieces_of
from course_utils.words import count, ranks

LOOKS = 500_000  # at costs: more than enough for 60 layers, far too few to try all cuts of them

REJECTED = (
    ("more-ranks-than-layers", [1, 2], 3),
    ("more-ranks-than-layers", [], 1),
    ("no-rank", [1, 2], 0),
    ("no-rank", [1, 2], -1),
    ("negative-cost", [1, -1], 1),
    ("negative-cost", [3, -1, 2], 2),
)


class TooManyLooks(TimeoutError):
    """The costs were looked at too often."""


class Costly(list):
    """Costs that can be looked at this many times only."""

    looks = 0

    def __getitem__(self, index: int | slice) -> Any:
        self.looks += 1
        if self.looks > LOOKS:
            raise TooManyLooks(f"{LOOKS:,} looks at the costs were not enough")
        return super().__getitem__(index)


def with_few_looks(function: Callable, costs: Costs, pieces: int) -> Any:
    """Call the learner's function so that it ends, too, if it tries all cuts."""
    return function(Costly(costs), pieces)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(costs: Costs, pieces: int, more: str = "", key: str = "") -> Case:
        label = f"costs {list(costs)} on {ranks(pieces)}{more}"
        return Case(label, [(costs, pieces)], [by_filling(list(costs), pieces)], with_comm=False, key=key)

    def quarters(n: int, least: int = 1) -> list[float]:
        """Fractions that can be added in any order without rounding."""
        return (rng.integers(least, 40, n) / 4).tolist()

    yield case([4, 1, 1, 1, 1, 4], 3)
    yield case([5, 1, 2, 1, 6, 7, 2], 4)
    yield case([2, 2, 2, 2, 8], 2)
    yield case([1, 1, 1, 9, 1, 1], 4)
    yield case([5], 1)
    yield case([3, 1, 4, 1, 5], 5)
    yield case([1, 1, 1, 1, 1], 3)
    yield case([0, 0, 7, 0, 0, 0], 3, "; some layers cost nothing", "free-layers")
    yield case([0.25, 0.5, 0.25, 0.75, 0.5], 3)
    yield case([0.25] * 4, 2)
    yield case([10, 1, 1, 1, 1, 1, 1, 10], 4)
    for _ in range(6):
        yield case(quarters(int(rng.integers(5, 12))), int(rng.integers(2, 6)))
    for _ in range(4):
        yield case(rng.integers(0, 4, int(rng.integers(7, 13))).tolist(), int(rng.integers(2, 7)))
    yield case([0, 0, 0, 0], 3, "; no layer costs anything")
    yield case(tuple(quarters(9, 0)), 3, ", a tuple", "tuple")
    yield case([10**9 * int(cost) for cost in rng.integers(1, 40, 10)], 4)
    yield case([10**6 + int(cost) for cost in rng.permutation(9)], 4)
    yield case([10**9, 2, 10**9 - 1], 2, ", bytes")
    yield after_another_call(
        case([3, 3, 3, 3, 3, 3], 3, ", after six others", AFTER_ANOTHER_CALL), [([4, 1, 1, 1, 1, 4], 3)]
    )
    many = quarters(60)
    label = f"{count(len(many), 'layer')} on {ranks(10)}"
    yield Case(label, [(many, 10)], [by_filling(many, 10)], with_comm=False, harness=with_few_looks)
    for key, costs, pieces in REJECTED:
        label = f"{key.replace('-', ' ')}, split_layers({costs}, {pieces})"
        yield rejected(label, (costs, pieces), key=key)


def _given(outcome: Outcome) -> tuple[Costs, int]:
    return outcome.case.arguments[0]


def _worst(costs: Costs, sizes: list[int]) -> float:
    return max(map(sum, pieces_of(costs, sizes)))


def _rank_without_a_layer(case: Case, outcome: Outcome) -> bool:
    return 0 in outcome.results[0] or len(outcome.results[0]) != _given(outcome)[1]


def _not_all_layers(case: Case, outcome: Outcome) -> bool:
    return sum(outcome.results[0]) != len(_given(outcome)[0])


def _a_cut(case: Case, outcome: Outcome) -> bool:
    return not _not_all_layers(case, outcome) and not _rank_without_a_layer(case, outcome)


def _as_good_a_cut(case: Case, outcome: Outcome) -> bool:
    costs, _ = _given(outcome)
    return _a_cut(case, outcome) and _worst(costs, list(outcome.results[0])) == _worst(costs, case.expected[0])


def _all_cuts_tried(case: Case, outcome: Outcome) -> bool:
    waits = any(reply.kind == "interrupted" for reply in outcome.attempt.replies)
    return case.harness is with_few_looks and (waits or raised(outcome, TooManyLooks.__name__))


EXERCISE = Exercise(
    library="split_layers",
    number=1,
    minutes=15,
    difficulty=2,
    turn="the cut whose most expensive piece is the cheapest",
    title="which rank gets which layers?",
    cases=_cases,
    hints=(
        "Suppose you already knew the best possible maximum. How would you then cut, beginning with the first "
        "layer? And to find this maximum: if you knew the best cut of all the layers after the first piece, for "
        "each place where that piece can end, how would you choose the place?",
        "Let `worst[k][first]` be the best maximum for the layers from `first` on, with k ranks. It is the minimum "
        "over `end` of `max(sum(costs[first:end]), worst[k - 1][end])`. For k = 0 it is 0 after the last layer and "
        "infinite everywhere else. Then cut from the first layer on. Each piece ends as late as possible, if "
        "neither the piece nor `worst` of the rest is above `worst[ranks][0]`.",
    ),
    symptoms={
        "all cuts are tried": _all_cuts_tried,
        "a rank has no layer": _rank_without_a_layer,
        "not every layer is in a piece": _not_all_layers,
        "the cut is as good as the best": _as_good_a_cut,
        "it is a cut": _a_cut,
    },
    praise=lambda outcome: "no cut is better, with few layers and with 60, and what can't be cut is rejected",
)

"""The check of `split_layers`: the cheapest cut, found in another way than the library's."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, error_of, nothing_returned, raised, same
from course_utils.lessons.model_parallel.checks import LESSON
from course_utils.lessons.model_parallel.checks.cuts import Costs, all_cuts, by_filling, pieces_of, up_to_the_average
from course_utils.words import count, ranks

LOOKS = 500_000  # at costs: more than enough for 60 layers, far too few to try all cuts of them


class Costly(list):
    """Costs that can be looked at so many times only."""

    looks = 0

    def __getitem__(self, place: int | slice) -> Any:
        self.looks += 1
        if self.looks > LOOKS:
            raise TimeoutError(f"{LOOKS:,} looks at the costs were not enough")
        return super().__getitem__(place)


def with_few_looks(function: Callable, costs: Costs, pieces: int) -> Any:
    """Call the learner's function so that it ends, too, if it tries all cuts."""
    return function(Costly(costs), pieces)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(costs: Costs, pieces: int) -> Case:
        label = f"costs {list(costs)} on {ranks(pieces)}"
        wanted = by_filling(list(costs), pieces)
        return Case(label, [(costs, pieces)], [wanted], expected_arguments=[{0: costs}], with_comm=False)

    def quarters(n: int) -> list[float]:
        """Fractions that can be added in any order without rounding."""
        return (rng.integers(1, 40, n) / 4).tolist()

    yield case([4, 1, 1, 1, 1, 4], 3)
    yield case([5, 1, 2, 1, 6, 7, 2], 4)
    yield case([2, 2, 2, 2, 8], 2)
    yield case([1, 1, 1, 9, 1, 1], 4)
    yield case([5], 1)
    yield case([3, 1, 4, 1, 5], 5)
    yield case([1, 1, 1, 1, 1], 3)
    yield case([0, 0, 7, 0, 0, 0], 3)
    yield case([0.25, 0.5, 0.25, 0.75, 0.5], 3)
    yield case([0.25] * 4, 2)
    yield case([10, 1, 1, 1, 1, 1, 1, 10], 4)
    for _ in range(6):
        yield case(quarters(int(rng.integers(5, 12))), int(rng.integers(2, 5)))
    yield case(tuple(quarters(9)), 3)
    yield case([10**9 * int(one) for one in rng.integers(1, 40, 10)], 4)
    many = quarters(60)
    label = f"{count(len(many), 'layer')} on {ranks(10)}"
    yield Case(label, [(many, 10)], [by_filling(many, 10)], with_comm=False, harness=with_few_looks)
    for given in (([1, 2], 3), ([1, 2], 0), ([1, 2], -1), ([], 1), ([1, -1], 1), ([3, -1, 2], 2)):
        yield Case(f"split_layers{given}", [given], ["CourseError"], with_comm=False, harness=error_of)


def _given(case: Case) -> tuple[Costs, int]:
    return case.arguments[0]


def _got(outcome: Outcome) -> list:
    return list(outcome.results[0])


def _refused(wrong: Callable[[Costs, int], bool]) -> Recogniser:
    return lambda case, outcome: case.harness is error_of and wrong(*_given(case))


def _worst(costs: Costs, sizes: Sequence[int]) -> float:
    return max(map(sum, pieces_of(costs, sizes)))


def _form(change: Callable[[Costs, list[int]], list]) -> Recogniser:
    """A recogniser of a cut, good or bad, that is told in another form."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        costs, pieces = _given(case)
        told = [change(costs, sizes) for sizes in all_cuts(costs, pieces)]
        return _got(outcome) in told and not _valid(case, outcome)

    return recognises


def _layers(costs: Costs, sizes: list[int]) -> list:
    return [list(piece) for piece in pieces_of(costs, sizes)]


def _indices(costs: Costs, sizes: list[int]) -> list:
    return _layers(list(range(len(costs))), sizes)


def _sums(costs: Costs, sizes: list[int]) -> list:
    return [sum(piece) for piece in pieces_of(costs, sizes)]


def _starts(costs: Costs, sizes: list[int]) -> list:
    return [0, *itertools.accumulate(sizes)][:-1]


def _borders(costs: Costs, sizes: list[int]) -> list:
    return [0, *itertools.accumulate(sizes)]


def _valid(case: Case, outcome: Outcome) -> bool:
    (costs, pieces), sizes = _given(case), _got(outcome)
    counted = all(type(size) is int for size in sizes)
    return counted and len(sizes) == pieces and sum(sizes) == len(costs) and min(sizes) >= 1


def _not_all(case: Case, outcome: Outcome) -> bool:
    return sum(_got(outcome)) != len(_given(case)[0])


def _empty(case: Case, outcome: Outcome) -> bool:
    return 0 in _got(outcome) or len(_got(outcome)) != _given(case)[1]


def _tie(case: Case, outcome: Outcome) -> bool:
    costs, _ = _given(case)
    return _valid(case, outcome) and _worst(costs, _got(outcome)) == _worst(costs, case.expected[0])


def _alike(case: Case, outcome: Outcome) -> bool:
    """Whether the numbers of layers differ by one at most, the longer ones first or last."""
    sizes, rising = _got(outcome), sorted(_got(outcome))
    return _valid(case, outcome) and rising[-1] - rising[0] <= 1 and sizes in (rising, rising[::-1])


def _to_the_average(case: Case, outcome: Outcome) -> bool:
    """Whether pieces were closed when they reached the average, or before they went beyond it."""
    costs, pieces = _given(case)
    return _got(outcome) in [up_to_the_average(costs, pieces, beyond) for beyond in (True, False)]


def _best_by(measure: Callable[[list[float]], float]) -> Recogniser:
    """A recogniser of a cut that is the best by another measure of the pieces' costs."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        costs, pieces = _given(case)
        least = min(measure(_sums(costs, sizes)) for sizes in all_cuts(costs, pieces))
        return _valid(case, outcome) and measure(_sums(costs, _got(outcome))) == least

    return recognises


def _spread(sums: list[float]) -> float:
    return max(sums) - min(sums)


def _tries_all(case: Case, outcome: Outcome) -> bool:
    waits = any(reply.kind == "interrupted" for reply in outcome.attempt.replies)
    return case.harness is with_few_looks and (waits or raised(outcome, "looks at the costs"))


def _changed(case: Case, outcome: Outcome) -> bool:
    return not same(outcome.arguments[0][0], _given(case)[0])


def _a_fraction_of_one(case: Case, outcome: Outcome) -> bool:
    costs, pieces = _given(case)
    whole = all(float(cost).is_integer() for cost in costs)
    return not whole and _valid(case, outcome) and _worst(costs, _got(outcome)) < _worst(costs, case.expected[0]) + 1


SPLIT_LAYERS = Exercise(
    name="split_layers",
    library="course_utils.lessons.model_parallel.split_layers:split_layers",
    lesson=LESSON,
    place=1,
    minutes=15,
    difficulty=2,
    turn="the cut whose most expensive piece is the cheapest",
    title="which rank gets which layers?",
    cases=_cases,
    picture=False,
    hints=(
        "Suppose you knew how expensive the most expensive piece may be. How would you cut then, from the first layer "
        "on? And if you knew the best cuts of the layers behind the first piece, how would you choose where it ends?",
        "`worst[k][first]`, the best for the layers from `first` on with k ranks, is the least over `end` of "
        "`max(sum(costs[first:end]), worst[k - 1][end])`; with k = 0 it is 0 at the end and infinite elsewhere. Then "
        "go from the first layer on: each piece ends as late as it can without being dearer than `worst[ranks][0]`.",
    ),
    mistakes=(
        Mistake("What does the docstring promise where there is no rank?", _refused(lambda costs, pieces: pieces < 1)),
        Mistake(
            "What does the docstring promise for a rank without a layer?",
            _refused(lambda costs, pieces: pieces > len(costs)),
        ),
        Mistake("What does the docstring promise for a cost below 0?", _refused(lambda costs, pieces: min(costs) < 0)),
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("How many cuts are there of 60 layers for 10 ranks: can each be tried?", _tries_all),
        Mistake("Whose list is `costs`: does the caller need it again?", _changed),
        Mistake("Does the result tell how many layers each rank gets, or which?", _form(_layers)),
        Mistake("Does the result tell how many layers each rank gets, or which?", _form(_indices)),
        Mistake("Does the result tell where pieces begin and end, or how long they are?", _form(_starts)),
        Mistake("Does the result tell where pieces begin and end, or how long they are?", _form(_borders)),
        Mistake("Layers or their costs: what is counted in the result?", _form(_sums)),
        Mistake("Does every rank get at least one layer?", _empty),
        Mistake("Is every layer in one piece, the last ones too?", _not_all),
        Mistake("Of several cuts that are equally good, which has the longest first piece?", _tie),
        Mistake("Are costs whole numbers?", _a_fraction_of_one),
        Mistake("Shall the pieces have equally many layers, or cost equally much?", _alike),
        Mistake("What is left for the last rank when each earlier one stops at the average?", _to_the_average),
        Mistake("Does it matter how cheap the cheapest piece is?", _best_by(_spread)),
        Mistake(
            "Can one border be moved so that the most expensive piece becomes cheaper?",
            lambda case, outcome: _valid(case, outcome),
        ),
    ),
    praise=lambda outcome: "no cut is better, for few layers and for 60, and what cannot be cut is refused",
)

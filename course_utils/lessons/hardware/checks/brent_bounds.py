"""The check of `brent_bounds`: graphs whose work and depth are known, and schedules that keep within the bounds."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import same

Graph = Mapping[Hashable, Collection[Hashable]]
MOST_ASKED = 100_000


class LimitedNeeds(dict):
    """Needs that raise when they are asked for too often: whoever follows every path would never come to an end."""

    asked = 0

    def __getitem__(self, task: Hashable) -> Collection[Hashable]:
        self.asked += 1
        if self.asked > MOST_ASKED:
            raise RuntimeError(f"needs was asked {MOST_ASKED:,} times about {len(self)} tasks")
        return super().__getitem__(task)

    def get(self, task: Hashable, default: object = None) -> object:
        """As that of a dictionary, and counted too."""
        try:
            return self[task]
        except KeyError:
            return default


def counted(function: Callable, needs: Graph, processors: int) -> object:
    """What the learner's function returns for needs that count."""
    return function(LimitedNeeds(needs), processors)


def chain(n: int) -> Graph:
    """Each task needs the one before."""
    return {task: [task - 1] if task > 1 else [] for task in range(1, n + 1)}


def tree(depth: int) -> Graph:
    """Each task needs two others, `depth` rows of them."""
    return {task: [2 * task, 2 * task + 1] if 2 * task < 2**depth else [] for task in range(1, 2**depth)}


def ladder(rungs: int) -> Graph:
    """Rows of two tasks that both need both of the row before: 2^rungs paths."""
    return {(row, side): [(row - 1, other) for other in "ab"] if row else [] for row in range(rungs) for side in "ab"}


def by_the_last(needs_of_the_last: list[str]) -> Graph:
    """Depth 4, found only by one of the last task's needs."""
    return {"last": needs_of_the_last, "a": [], "b": ["a"], "c": ["b"], "x": ["a", "y", "z"], "y": [], "z": []}


def of_any_kind() -> Graph:
    """Depth 4, through tasks that are 0 or empty; others are called as those are written."""
    return {"None": ["0"], None: [0], 0: [""], "": [()], (): [], "0": [], "()": []}


def layered(rng: np.random.Generator, widths: list[int]) -> Graph:
    """Rows of tasks; each needs one of the row before, and some of any earlier row."""
    rows, needs, number = [], {}, 0
    for width in widths:
        row = list(range(number, number + width))
        number += width
        for task in row:
            others = [int(rng.choice(rows[-1]))] if rows else []
            earlier = [other for before in rows for other in before]
            others += [
                int(other) for other in rng.permutation(earlier)[: int(rng.integers(0, 3))] if other not in others
            ]
            needs[task] = others
        rows.append(row)
    return needs


def shuffled(rng: np.random.Generator, needs: Graph, kind: Callable = list) -> Graph:
    """The same graph, its tasks named otherwise; they and their needs in another order."""
    names = {task: f"t{number}" for task, number in zip(needs, rng.permutation(len(needs)), strict=True)}

    def in_any_order(tasks: Collection[Hashable]) -> list[Hashable]:
        listed = list(tasks)
        return [listed[index] for index in rng.permutation(len(listed))]

    return {names[task]: kind(names[other] for other in in_any_order(needs[task])) for task in in_any_order(needs)}


def rounds(needs: Graph) -> int:
    """The depth, by peeling off the tasks that nobody needs any more, from the end."""
    left, found = {task: set(others) for task, others in needs.items()}, 0
    while left:
        needed = set().union(*left.values())
        left = {task: others for task, others in left.items() if task in needed}
        found += 1
    return found


def bounds(work: int, depth: int, processors: int) -> tuple[float, float]:
    """The two numbers that are asked for."""
    return float(max(work / processors, depth)), work / processors + depth


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, needs: Graph, processors: int, key: str = "") -> Case:
        depth = rounds(needs)
        label = f"{label}: {len(needs)} tasks, depth {depth}, {processors} processors"
        expected = bounds(len(needs), depth, processors)
        parts = ("the lower bound", "the upper bound")
        return Case(label, [(needs, processors)], [expected], with_comm=False, tolerance=1e-12, key=key, parts=parts)

    def drawn(kind: Callable = list) -> Graph:
        return shuffled(rng, layered(rng, [int(width) for width in rng.integers(1, 7, 8)]), kind)

    yield case("a chain", chain(7), 2)
    yield case("a tree", tree(4), 2)
    yield case("a tree", tree(4), 1)
    yield case("a tree and many processors", tree(4), 100)
    yield case("tasks that need nothing", {task: [] for task in range(1, int(rng.integers(8, 13)))}, 4)
    yield case("in no order", shuffled(rng, chain(7)), 3)
    yield case("one need of three is the deepest", by_the_last(["y", "c", "x"]), 3)
    yield case("the first need is the deepest", by_the_last(["c", "x", "y"]), 3)
    yield case("the last need is the deepest", by_the_last(["x", "y", "c"]), 3)
    for _ in range(4):
        yield case("a graph drawn at random, in no order", drawn(), int(rng.integers(2, 9)))
    for kind in (tuple, set, frozenset):
        yield case(f"needs in a {kind.__name__}", drawn(kind), 3)
    yield case("0, nothing and empty things as tasks", of_any_kind(), 3, "any-kind")
    second = case("after a chain of the same tasks, a tree", tree(4), 2, AFTER_ANOTHER_CALL)
    yield after_another_call(second, [(chain(15), 2)])
    yield case("one task", {"alone": []}, 5)
    yield case("no task", {}, 2, "no-task")
    yield replace(case("many paths", ladder(60), 4, "many-paths"), harness=counted)
    yield case("a long chain", chain(150), 7)


def _too_shallow(case: Case, outcome: Outcome) -> bool:
    needs, processors = case.arguments[0]
    found = [bounds(len(needs), depth, processors) for depth in range(rounds(needs))]
    return any(same(outcome.results[0], pair, 1e-9) for pair in found)


def _too_deep(case: Case, outcome: Outcome) -> bool:
    needs, processors = case.arguments[0]
    found = [bounds(len(needs), depth, processors) for depth in range(rounds(needs) + 1, 2 * len(needs) + 2)]
    return any(same(outcome.results[0], pair, 1e-9) for pair in found)


def _upper_wrong(case: Case, outcome: Outcome) -> bool:
    return outcome.finding.where == (1,)


EXERCISE = Exercise(
    library="work_and_depth",
    number=3,
    minutes=15,
    difficulty=2,
    turn="count the tasks, find the longest path, put both together",
    title="how fast can p workers be?",
    cases=_cases,
    hints=(
        "Suppose you have as many processors as you like. Which tasks can run in the first round, and which in the "
        "second? How many rounds does it take until all are done?",
        "Keep a set of the tasks that are done. In each round, add every task whose needs are all in the set. The "
        "number of rounds is D. Then return (max(W / p, D), W / p + D).",
    ),
    limit=10.0,
    symptoms={
        "the depth is too small": _too_shallow,
        "the depth is too large": _too_deep,
        "the upper bound is wrong": _upper_wrong,
    },
    praise=lambda outcome: "work, depth and both bounds are right for chains, trees, many paths and none",
)

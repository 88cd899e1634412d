"""The check of `brent_bounds`: graphs whose work and depth are known, and schedules that keep within the bounds."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.lessons.hardware.checks import LESSON

Graph = dict[Hashable, list[Hashable]]
MOST_ASKED = 100_000


class LimitedNeeds(dict):
    """Needs that raise when they are asked for too often: whoever follows every path would never come to an end."""

    asked = 0

    def __getitem__(self, task: Hashable) -> list[Hashable]:
        self.asked += 1
        if self.asked > MOST_ASKED:
            raise RuntimeError(f"needs was asked {MOST_ASKED:,} times about {len(self)} tasks")
        return super().__getitem__(task)


def counted(function: Callable, needs: Graph, processors: int) -> object:
    """What the learner's function returns for needs that count."""
    return function(LimitedNeeds(needs), processors)


def chain(n: int) -> Graph:
    """Each task needs the one before."""
    return {task: [task - 1] if task else [] for task in range(n)}


def tree(depth: int) -> Graph:
    """Each task needs two others, `depth` rows of them."""
    return {task: [2 * task + 1, 2 * task + 2] if 2 * task + 2 < 2**depth - 1 else [] for task in range(2**depth - 1)}


def ladder(rungs: int) -> Graph:
    """Rows of two tasks that both need both of the row before: 2^rungs paths."""
    return {(row, side): [(row - 1, other) for other in "ab"] if row else [] for row in range(rungs) for side in "ab"}


def layered(rng: np.random.Generator, widths: list[int]) -> Graph:
    """Rows of tasks; each needs one of the row before, and some of any earlier row."""
    rows, needs, number = [], {}, 0
    for width in widths:
        row = list(range(number, number + width))
        number += width
        for task in row:
            others = [int(rng.choice(rows[-1]))] if rows else []
            earlier = [one for before in rows for one in before]
            others += [int(one) for one in rng.permutation(earlier)[: int(rng.integers(0, 3))] if one not in others]
            needs[task] = others
        rows.append(row)
    return needs


def shuffled(rng: np.random.Generator, needs: Graph) -> Graph:
    """The same graph, its tasks named otherwise and in another order."""
    names = {task: f"t{number}" for task, number in zip(needs, rng.permutation(len(needs)), strict=True)}
    tasks = list(needs)
    order = [tasks[place] for place in rng.permutation(len(tasks))]
    return {names[task]: [names[other] for other in needs[task]] for task in order}


def rounds(needs: Mapping) -> int:
    """The depth, by peeling off the tasks that nobody needs any more, from the end."""
    left, found = {task: set(others) for task, others in needs.items()}, 0
    while left:
        needed = set().union(*left.values())
        left = {task: others for task, others in left.items() if task in needed}
        found += 1
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, needs: Graph, processors: int) -> Case:
        share, depth = len(needs) / processors, rounds(needs)
        expected = (float(max(share, depth)), share + depth)
        label = f"{label}: {len(needs)} tasks, depth {depth}, {processors} processors"
        return Case(label, [(needs, processors)], [expected], with_comm=False, tolerance=1e-9)

    yield case("a chain", chain(6), 2)
    yield case("a tree", tree(4), 2)
    yield case("a tree", tree(4), 1)
    yield case("a tree and many processors", tree(4), 100)
    yield case("tasks that need nothing", {task: [] for task in range(int(rng.integers(7, 12)))}, 4)
    yield case("in no order", shuffled(rng, chain(7)), 3)
    widths = [int(width) for width in rng.integers(1, 7, 8)]
    yield case("a graph drawn at random, in no order", shuffled(rng, layered(rng, widths)), 3)
    yield case("one task", {"alone": []}, 5)
    yield case("no task", {}, 2)
    yield replace(case("many paths", ladder(60), 4), harness=counted)
    yield case("a long chain", chain(300), 7)


def _depth(case: Case) -> tuple[int, int, int]:
    """Work, depth and processors."""
    needs, processors = case.arguments[0]
    return len(needs), rounds(needs), processors


def _formula(formula: Callable[[int, int, int], tuple[float, float]]) -> Recogniser:
    def recognises(case: Case, outcome: Outcome) -> bool:
        wanted = formula(*_depth(case))
        return not same(case.expected[0], wanted, 1e-9) and same(outcome.results[0], wanted, 1e-9)

    return recognises


def _first(outcome: Outcome) -> float:
    return float(outcome.results[0][0])


def _other_depth(depth_of: Callable[[Mapping], int]) -> Recogniser:
    """A recogniser of the right formula with another number for the depth."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        needs, processors = case.arguments[0]
        share, depth = len(needs) / processors, depth_of(needs)
        return depth != rounds(needs) and same(outcome.results[0], (max(share, depth), share + depth), 1e-9)

    return recognises


def as_listed(needs: Mapping) -> int:
    """The depth that one finds who takes each task's needs to be listed before it."""
    depth: dict = {}
    for task, others in needs.items():
        depth[task] = 1 + max((depth.get(other, 0) for other in others), default=0)
    return max(depth.values(), default=0)


def _listed(case: Case, outcome: Outcome) -> bool:
    return _other_depth(as_listed)(case, outcome) or raised(outcome, "KeyError")


def _too_shallow(case: Case, outcome: Outcome) -> bool:
    """The right formula, with a depth that is too small."""
    _, depth, _ = _depth(case)
    return any(
        _formula(lambda w, d, p, less=less: (max(w / p, less), w / p + less))(case, outcome) for less in range(depth)
    )


def _edges(case: Case, outcome: Outcome) -> bool:
    needs, processors = case.arguments[0]
    share, depth = sum(map(len, needs.values())) / processors, rounds(needs)
    return same(outcome.results[0], (max(share, depth), share + depth), 1e-9)


def _hangs(case: Case, outcome: Outcome) -> bool:
    kinds = [reply.kind for reply in outcome.attempt.replies]
    return raised(outcome, "needs was asked") or any(kind in ("interrupted", "lost") for kind in kinds)


def _nothing_to_do(case: Case, outcome: Outcome) -> bool:
    return not case.arguments[0][0]


def _first_tasks(case: Case, outcome: Outcome) -> bool:
    """The largest of nothing was asked for: `max` over the needs of a task that has none."""
    return len(case.arguments[0][0]) > 0 and (raised(outcome, "empty sequence") or raised(outcome, "is empty"))


def _not_two(case: Case, outcome: Outcome) -> bool:
    result = outcome.results[0]
    return outcome.run is not None and (not hasattr(result, "__len__") or len(result) != 2)


STEPS = "Do you count the tasks on the longest path, or the steps between them?"
WHOLE = "Is the time a whole number here?"
DEEPER = "Does more depth make the upper bound higher?"

BRENT_BOUNDS = Exercise(
    name="brent_bounds",
    library="course_utils.lessons.hardware.work_and_depth:brent_bounds",
    lesson=LESSON,
    place=3,
    minutes=15,
    difficulty=2,
    turn="count the tasks, find the longest path, put both together",
    title="how fast can p workers be?",
    cases=_cases,
    picture=False,
    hints=(
        "With as many processors as you like, which tasks can run in the first round? Which in the second? How many "
        "rounds until all are done? And with one processor?",
        "Keep a set of done tasks. Each round adds every task whose needs are all in the set; the rounds are D. Then "
        "(max(W / p, D), W / p + D).",
    ),
    mistakes=(
        Mistake("How often do you look at the same task? How many paths lead to it?", _hangs),
        Mistake("What are work and depth of nothing?", _nothing_to_do),
        Mistake("How deep is a task that needs nothing?", _first_tasks),
        Mistake("Is every task listed after those that it needs?", _listed),
        Mistake("Do you return two numbers: the lower bound, and the upper?", _not_two),
        Mistake(
            "With one processor, can it be done in D? With a thousand, in less than D?",
            lambda case, outcome: (
                same(outcome.results[0][1], case.expected[0][1]) and case.expected[0][0] > _first(outcome)
            ),
        ),
        Mistake(
            "Do you count the tasks on the longest path, or the steps between them?",
            _other_depth(lambda n: rounds(n) - 1),
        ),
        Mistake(WHOLE, _formula(lambda w, d, p: (max(-(-w // p), d), -(-w // p) + d))),
        Mistake(WHOLE, _formula(lambda w, d, p: (max(w // p, d), w // p + d))),
        Mistake("Which of the two bounds comes first?", _formula(lambda w, d, p: (w / p + d, max(w / p, d)))),
        Mistake(
            "Does more depth make the upper bound higher?", _formula(lambda w, d, p: (max(w / p, d), max(w / p, d)))
        ),
        Mistake("Does each processor do all the work?", _formula(lambda w, d, p: (max(w, d), w + d))),
        Mistake("Does work count tasks, or what they need?", _edges),
        Mistake("Is that the longest of all paths, from whichever task it starts?", _too_shallow),
    ),
    praise=lambda outcome: "work, depth and both bounds are right for chains, trees, many paths and none",
)

"""The check of `best_strategy`: small graphs whose optimum is known by trying everything, with traps on the way there.

A walk begins where no single change helps, so that one has to go through slower strategies; it is too warm to end at
the best it met; and where memory is limited the best of all does not fit.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import raised, says
from course_utils.lessons.strategy_search.checks import LESSON
from course_utils.lessons.strategy_search.checks.common import FORGOT, NOTHING, shown
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.simulator.random_graphs import DrawnCosts, random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.step_tables import Tables, Whole, make_tables
from course_utils.words import count, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEVICES, OPERATORS, ITERATIONS = 2, 8, 4000
WALKS = 24
NEVER, AMPLE = 2**60, 2**40
NO_STRATEGY, UNKNOWN = "a list with a configuration for each operator is expected", "which is none of its choices"
TOO_OFTEN, NO_ROOM, LONGER = "strategies were simulated", "bytes more than the devices have", "longer than"
WARM = 0.02, 0.05
"""Temperatures, as shares of the time with which the walk begins."""
Landscape = tuple[Tables, tuple[int, ...], Whole, Whole]


def landscape(graph: OperatorGraph, costs: DrawnCosts, devices: int) -> Landscape:
    """All strategies of a small graph: tables, how many choices each operator has, all makespans, all excesses."""
    tables = make_tables(graph, costs, devices)
    sizes = tuple(len(own) for own in tables.choices)
    columns = np.stack(np.unravel_index(np.arange(prod(sizes)), sizes))
    return tables, sizes, tables.makespans(columns), tables.excess(columns)


def walked(
    function: Callable,
    graph: OperatorGraph,
    costs: DrawnCosts,
    devices: int,
    start: list[Config],
    iterations: int,
    temperature: float,
    seed: int,
) -> Any:
    """Runs on a rank: the number of the strategy that came back, and how many were simulated; a text where it is none.

    What the function may ask is looked up among all strategies.
    """
    tables, sizes, makespans, excess = landscape(graph, costs, devices)
    choices, asked = choices_of(graph, devices), []

    def number(strategy: Strategy) -> int:
        return int(np.ravel_multi_index(tuple(tables.column(strategy)), sizes))

    def makespan_of(strategy: Strategy) -> int:
        asked.append(number(strategy))
        return int(makespans[asked[-1]])

    def fits(strategy: Strategy) -> bool:
        return bool(excess[number(strategy)] == 0)

    random = np.random.default_rng(seed)
    found = function(list(start), choices, makespan_of, fits, iterations, temperature, random)
    if found is None:
        return f"the function {NOTHING}; {NO_STRATEGY}"
    if not isinstance(found, list | tuple) or len(found) != len(start):
        return f"the function returned {shown(found)}; {NO_STRATEGY}"
    for place, (config, own) in enumerate(zip(found, choices, strict=True)):
        if config not in own:
            return f"operator {place} got {shown(config)}, {UNKNOWN}"
    return {"found": number(found), "simulated": len(asked), "walk": asked[:ITERATIONS]}


def _judge(best: int, makespans: Whole, excess: Whole) -> Callable[[Outcome], str | None]:
    """What is wrong with an answer, where `best` nanoseconds are possible."""

    def wrong(outcome: Outcome) -> str | None:
        told, iterations = outcome.results[0], outcome.case.arguments[0][4]
        if isinstance(told, str):
            return told
        if excess[told["found"]]:
            return f"the strategy needs {excess[told['found']]} {NO_ROOM}"
        took = makespans[told["found"]]
        if told["simulated"] > 2 * iterations + 2:
            return f"{told['simulated']} {TOO_OFTEN} for {count(iterations, 'proposal')}"
        if took > best:
            return f"the strategy takes {took} ns, {LONGER} the best there is, {best} ns"
        return None

    return wrong


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    for limited in (False, True, False):
        yield _trap(rng, limited)
    graph = random_graph(rng, 5)
    costs = random_costs(rng, graph)
    tables, sizes, makespans, excess = landscape(graph, costs, DEVICES)
    yield _case("no proposals", graph, costs, int(rng.integers(prod(sizes))), 0, 1.0, rng, None)
    best = int(makespans.argmin())
    yield _case("from the best one", graph, costs, best, 500, 0.3 * makespans[best], rng, int(makespans[best]))
    yield _trap(rng, limited=True)


def _case(
    label: str,
    graph: OperatorGraph,
    costs: DrawnCosts,
    start: int,
    iterations: int,
    temperature: float,
    rng: np.random.Generator,
    best: int | None,
) -> Case:
    """A walk from strategy number `start`; without `best` nothing quicker than the start is expected."""
    tables, sizes, makespans, excess = landscape(graph, costs, DEVICES)
    begin = tables.strategy(np.array(np.unravel_index(start, sizes)))
    given = (graph, costs, DEVICES, begin, iterations, float(temperature), int(rng.integers(2**31)))
    judged = _judge(int(makespans[start]) if best is None else best, makespans, excess)
    return Case(label, [given], with_comm=False, harness=walked, judge=judged)


def _trap(rng: np.random.Generator, limited: bool) -> Case:
    """A graph with a start from which no single change helps, and an optimum that a right walk comes to in any case."""
    while True:
        graph = random_graph(rng, OPERATORS)
        costs = random_costs(rng, graph, (AMPLE,) * DEVICES)
        tables, sizes, makespans, excess = landscape(graph, costs, DEVICES)
        if limited:  # not enough for the best of all
            best = np.unravel_index(int(makespans.argmin()), sizes)
            used = sum(memory[:, one] for memory, one in zip(tables.memory, best, strict=True))
            costs = replace(costs, limits=tuple(int(room) for room in used.max() * rng.uniform(0.8, 0.97, DEVICES)))
            tables, sizes, makespans, excess = landscape(graph, costs, DEVICES)
        times = np.where(excess == 0, makespans, NEVER).reshape(sizes)
        starts = traps(times)
        if not len(starts):
            continue
        start = int(starts[rng.integers(len(starts))])
        temperature, least = rng.uniform(*WARM) * makespans[start], int(times.min())
        if easy(rng, times, start, temperature):
            label = f"{count(len(graph), 'operator')}{', little memory' if limited else ''}"
            return _case(label, graph, costs, start, ITERATIONS, temperature, rng, least)


def traps(times: Whole) -> Whole:
    """Numbers of strategies, not the best, from which every change of one operator leads to one that is no quicker."""
    lowest = np.logical_and.reduce([times == times.min(axis=axis, keepdims=True) for axis in range(times.ndim)])
    return np.flatnonzero(lowest & (times > times.min()) & (times < NEVER))


def easy(rng: np.random.Generator, times: Whole, start: int, temperature: float) -> bool:
    """Whether all of many walks, a third as long, meet the best strategy, and few end there."""
    at = np.repeat(np.array(np.unravel_index(start, times.shape))[:, None], WALKS, axis=1)
    now, every = times[tuple(at)], np.arange(WALKS)
    least, movable = now.copy(), np.flatnonzero(np.array(times.shape) > 1)
    for _ in range(ITERATIONS // 3):
        chosen, proposed = rng.choice(movable, WALKS), at.copy()
        proposed[chosen, every] = rng.integers(np.array(times.shape)[chosen])
        new = times[tuple(proposed)]
        accepted = new - now <= temperature * rng.exponential(size=WALKS)
        at, now = np.where(accepted, proposed, at), np.where(accepted, new, now)
        least = np.minimum(least, now)
    return bool((least == times.min()).all() and (now == times.min()).mean() < 0.3)


def _took(outcome: Outcome) -> tuple[int, Whole]:
    """Makespan of the strategy that came back, and of all that were simulated on the way."""
    _, _, makespans, _ = landscape(*outcome.case.arguments[0][:3])
    told = outcome.results[0]
    return int(makespans[told["found"]]), makespans[np.array(told["walk"], dtype=int)]


def _met_a_better_one(case: Case, outcome: Outcome) -> bool:
    took, walk = _took(outcome)
    return LONGER in outcome.wrong and len(walk) > 0 and walk.min() < took


def _too_few(case: Case, outcome: Outcome) -> bool:
    return LONGER in outcome.wrong and outcome.results[0]["simulated"] < case.arguments[0][4] / 2


def _never_left(case: Case, outcome: Outcome) -> bool:
    """Whether everything that was simulated is at most one change from the start."""
    graph, costs, devices, start, *_ = case.arguments[0]
    tables, sizes, *_ = landscape(graph, costs, devices)
    columns = np.stack(np.unravel_index(np.array(outcome.results[0]["walk"], dtype=int), sizes))
    away = (columns != tables.column(start)[:, None]).sum(axis=0)
    return LONGER in outcome.wrong and bool((away <= 1).all())


def _praise(outcome: Outcome) -> str:
    took, walk = _took(outcome)
    begin, end = seconds_text(walk[0] / 1e9), seconds_text(took / 1e9)
    return f"the optimum every time; the last walk began at {begin} a step, its best takes {end}"


def _drawing(outcome: Outcome) -> "Figure | None":
    """What the learner's walk simulated, and the optimum."""
    from course_utils.lessons.strategy_search import pictures

    if isinstance(outcome.results[0], str) or len(outcome.results[0]["walk"]) < 2:
        return None
    _, walk = _took(outcome)
    _, _, makespans, excess = landscape(*outcome.case.arguments[0][:3])
    title = "What your walk simulated, and the quickest strategy that fits"
    return pictures.cost_over_iterations(
        {"proposals": [walk]}, title, int(makespans[excess == 0].min()), outcome.case.label
    )


BEST_STRATEGY = Exercise(
    name="best_strategy",
    library="course_utils.lessons.strategy_search.search.metropolis:best_strategy",
    lesson=LESSON,
    place=5,
    minutes=15,
    difficulty=2,
    turn="propose, simulate, accept or not; remember the best",
    title="the search for the best strategy",
    cases=_cases,
    hints=(
        "Two strategies have to be remembered on the way: which? What happens to each of them when a proposal is "
        "quicker, when it is slower and accepted, when it is refused? And which proposals are not even simulated?",
        "`now, time = start, makespan_of(start)` and `best, least = now, time`. Then `iterations` times: `propose`; if "
        "it does not `fit`, go on; simulate it; if `metropolis_accept(time, new, temperature, random)`, go there; if "
        "`new < least`, it is the best so far.",
    ),
    mistakes=(
        FORGOT,
        Mistake("Which is the best strategy before the first proposal?", lambda case, outcome: raised(outcome)),
        Mistake("Is it the strategy that you return, and nothing else?", says(NO_STRATEGY)),
        Mistake("Which strategies fit into the devices' memory?", says(NO_ROOM)),
        Mistake("How many strategies are simulated for each proposal?", says(TOO_OFTEN)),
        Mistake("Is the last strategy of a walk the best that it met?", _met_a_better_one),
        Mistake("How many proposals are to be made?", _too_few),
        Mistake("How does a walk leave a strategy from which each single change leads to a slower one?", _never_left),
        Mistake("Does the walk go to quicker strategies more easily than to slower ones?", says(LONGER)),
    ),
    praise=_praise,
    drawing=_drawing,
)

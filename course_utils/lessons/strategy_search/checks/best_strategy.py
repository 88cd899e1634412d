"""The check of `best_strategy`: small graphs whose optimum is known by trying everything, with traps on the way there.

A walk begins where no single change helps, so that one has to go through slower strategies; it is too warm to end at
the best it met; it stays as warm as it was; and where memory is limited the best of all does not fit, or nothing does,
or most ways are dead ends.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.strategy_search.checks.common import RETURNED_NOTHING, form_finding, malformed, shown
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.step_tables import Whole, make_tables
from course_utils.words import count, percent, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Bits = NDArray[np.bool_]
DEVICES, OPERATORS, ITERATIONS = 2, 8, 4000
WALKS = 24
NEVER, AMPLE = 2**60, 2**40
MOST_LOOKS = 4
"""After so many questions for each proposal, whether a strategy fits, the walk will not end by itself."""
STILL_ASKING = "still-asking"
CORNERED = "the walk never went back to a strategy that it had seen, and at last no new one was a single change away"
NO_STRATEGY = "your function returned {shown}; a list with a configuration for each operator is expected"
LONGER = "the strategy that you return takes {got} ns, and the best one takes {expected} ns"
WORDS = {
    RETURNED_NOTHING: NO_STRATEGY,
    "no-strategy": NO_STRATEGY,
    "not-a-choice": "operator {operator} got {shown}, which isn't one of its choices",
    STILL_ASKING: "the walk should make {proposals}, but it asked many more times whether a strategy fits",
}
WARM = 0.02, 0.05
"""Temperatures, as shares of the time with which the walk begins."""


def walked(
    function: Callable,
    choices: list[tuple[Config, ...]],
    times: Whole,
    room: Bits,
    start: Strategy,
    iterations: int,
    temperature: float,
    seed: int,
) -> Any:
    """Runs on a rank: what came back, and the numbers of all that was simulated; `malformed` where it is no strategy.

    Args:
        times: of all strategies, an axis for each operator.
        room: whether they fit.
    """
    index = [{config: number for number, config in enumerate(own)} for own in choices]
    asked: list[int] = []
    looked_at: list[int] = []

    def indices_of(strategy: Strategy) -> tuple[int, ...]:
        return tuple(own[config] for own, config in zip(index, strategy, strict=True))

    def makespan_of(strategy: Strategy) -> int:
        where = indices_of(strategy)
        asked.append(int(np.ravel_multi_index(where, times.shape)))
        return int(times[where])

    def fits(strategy: Strategy) -> bool:
        if len(looked_at) > MOST_LOOKS * (iterations + 10):
            raise _TooOften
        where = indices_of(strategy)
        looked_at.append(int(np.ravel_multi_index(where, times.shape)))
        return bool(room[where])

    random = np.random.default_rng(seed)
    fresh = random.bit_generator.state
    try:
        found = function(start, choices, makespan_of, fits, iterations, temperature, random)
    except _TooOften:
        return malformed(STILL_ASKING, proposals=count(iterations, "proposal"))
    if not isinstance(found, list | tuple) or len(found) != len(start):
        return malformed(RETURNED_NOTHING if found is None else "no-strategy", shown=shown(found))
    for number, (config, configs) in enumerate(zip(found, choices, strict=True)):
        if config not in configs:
            return malformed("not-a-choice", operator=number, shown=shown(config))
    drawn, end = random.bit_generator.state != fresh, indices_of(found)
    return {"takes": int(times[end]), "fits": bool(room[end]), "walk": asked, "looks": looked_at, "drawn": drawn}


def walked_again(function: Callable, choices: list[tuple[Config, ...]], times: Whole, *given: Any) -> Any:
    """Runs on a rank: what `walked` tells of a second search; in the first one the quickest is the slowest."""
    first = walked(function, choices, times.max() + times.min() - times, *given)
    return first if "malformed" in first else walked(function, choices, times, *given)


class _TooOften(Exception):
    """The walk does not count its proposals."""


def _wrong(outcome: Outcome) -> Finding | None:
    """Find what is wrong with an answer; the best that it can come to is the quickest that fits, or its start."""
    reply, (_, times, room, start, iterations, *_) = outcome.results[0], outcome.case.arguments[0]
    if wrong := form_finding(reply, WORDS):
        return wrong
    if not reply["fits"]:
        return own("does-not-fit", "the strategy that you return doesn't fit into the devices' memory")
    walk, begin, proposals = reply["walk"], _number(outcome, start), count(iterations, "proposal")
    if len(walk) > 2 * iterations + 2:  # the present strategy may be simulated again
        words = "the walk should make {proposals}, but `makespan_of` was called {got} times"
        return own("too-many-simulated", words, got=len(walk), proposals=proposals)
    if len(reply["looks"]) > 3 * iterations + 3:
        return own(STILL_ASKING, WORDS[STILL_ASKING], proposals=proposals)
    if iterations and not reply["drawn"]:
        return own("nothing-drawn", "nothing was drawn from `random`")
    near = set(_near(begin, times.shape))
    for number in walk:
        if number not in near and not reply["looks"]:
            return own("fit-not-asked", "the walk went on from a strategy that doesn't fit, and never called `fits`")
        if number not in near:
            words = "a strategy was simulated that is more than one change away from all that the walk had met before"
            return own("not-a-neighbour", words)
        if room.flat[number]:
            near |= _near(number, times.shape)
    if not all(room.flat[walk]):
        return own("simulated-unfit", "the walk simulated a strategy that doesn't fit into the devices' memory")
    best = int(times[room].min()) if iterations else int(times.flat[begin])
    if reply["takes"] <= best:
        return None
    met = min((int(times.flat[number]) for number in walk if room.flat[number]), default=NEVER)
    longer = {"got": reply["takes"], "expected": best}
    if met < reply["takes"]:
        return own("best-forgotten", f"{LONGER}; the walk had simulated one that takes {{met}} ns", met=met, **longer)
    proposed = _proposed(reply)
    if _cornered(proposed, times.shape):
        return own("cornered", f"{LONGER}; {CORNERED}", **longer)
    if len(proposed) < iterations / 2:
        words = f"{LONGER}; the walk should make {{proposals}}, but looked at only {{made}}"
        return own("too-few-proposals", words, made=len(proposed), proposals=proposals, **longer)
    if _near(begin, times.shape).issuperset(walk):
        return own(
            "near-the-start",
            f"{LONGER}; every strategy that the walk simulated is a single change away from the start",
            **longer,
        )
    return own("not-the-best", LONGER, **longer)


def _proposed(reply: dict) -> list[int]:
    """All that was looked at: a walk that keeps each result simulates nothing twice, but asks whether it fits."""
    return max(reply["walk"], reply["looks"], key=len)


def _cornered(proposed: list[int], shape: tuple[int, ...]) -> bool:
    """Whether a walk that looks at nothing twice came to where it had looked at all that is a change away."""
    looked_at = set(proposed)
    return len(looked_at) == len(proposed) and any(_near(number, shape) <= looked_at for number in proposed)


def _one_proposal(outcome: Outcome) -> Finding | None:
    """Find out whether a single proposal was looked at."""
    reply = outcome.results[0]
    if wrong := form_finding(reply, WORDS):
        return wrong
    if not reply["looks"] and len(reply["walk"]) < 2:
        return own("too-few-proposals", "the walk should make one proposal, but it looked only at its start")
    looked_at = {*reply["looks"], *reply["walk"]} - {_number(outcome, outcome.case.arguments[0][3])}
    if len(looked_at) > 1:
        return own(
            "too-many-proposals", "the walk should make one proposal, but it looked at {got}", got=len(looked_at)
        )
    return None


def _still_warm(outcome: Outcome) -> Finding | None:
    """Find out whether a walk from the best one still leaves it at the end, by steps that are seldom taken."""
    if wrong := _wrong(outcome):
        return wrong
    reply, times = outcome.results[0], outcome.case.arguments[0][1]
    near = _near(int(times.argmin()), times.shape)
    proposed = _proposed(reply)
    share = np.mean([number not in near for number in proposed[-len(proposed) // 4 :]])
    if share > 0.5:
        return None
    words = "near the end of the walk, {got} of its strategies were two or more changes away from the fastest; "
    words += "about 88% is expected"
    return own("cold-at-the-end", words, got=percent(share))


def _goes_on(outcome: Outcome) -> Finding | None:
    """Find out whether a walk on a plateau goes on from nearly every proposal."""
    if wrong := _wrong(outcome):
        return wrong
    walk, (_, times, *_) = outcome.results[0]["walk"], outcome.case.arguments[0]
    share = np.mean([after in _near(before, times.shape) for before, after in itertools.pairwise(walk)])
    if share > 0.6:
        return None
    if _cornered(_proposed(outcome.results[0]), times.shape):
        return own("cornered", CORNERED)
    words = "the walk went on from {got} of its proposals; about 98% is expected"
    return own("seldom-accepted", words, got=percent(share))


def _only_down(outcome: Outcome) -> Finding | None:
    """Find out whether a walk went to quicker strategies alone, as a cold one does."""
    if wrong := _wrong(outcome):
        return wrong
    times, now = outcome.case.arguments[0][1], _number(outcome, outcome.case.arguments[0][3])
    for number in outcome.results[0]["walk"]:
        if number not in _near(now, times.shape):
            words = "the walk went on from a slower strategy, although the temperature is nearly 0"
            return own("slower-when-cold", words)
        now = min(now, number, key=times.flat.__getitem__)
    return None


def _number(outcome: Outcome, strategy: Strategy) -> int:
    choices, times, *_ = outcome.case.arguments[0]
    numbers = [own.index(config) for own, config in zip(choices, strategy, strict=True)]
    return int(np.ravel_multi_index(numbers, times.shape))


@functools.lru_cache(maxsize=10_000)
def _near(number: int, shape: tuple[int, ...]) -> frozenset[int]:
    """The numbers of a strategy and of all that are one change away."""
    found, stride = [number], 1
    for size in reversed(shape):
        now = number // stride % size
        found += [number + (other - now) * stride for other in range(size)]
        stride *= size
    return frozenset(found)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    yield _trap(rng, limited=False)
    choices, times, _ = _landscape(rng, 5)
    start = int(rng.integers(times.size))
    only_start = (np.arange(times.size) == start).reshape(times.shape)
    yield _case("nothing else fits", choices, times, start, 20, 1.0, rng, room=only_start)
    yield _case("no proposals", choices, times, int(rng.integers(times.size)), 0, 1.0, rng, key="no-proposals")
    yield _case("from the best one", choices, times, int(times.argmin()), 500, 0.3 * times.min(), rng)
    choices = _devices(*rng.permutation([1, 2, 2, 3, 3, 4, 4, 4]))
    times = sum(np.ix_(*(rng.permutation(len(own)) * int(rng.integers(1000, 9000)) for own in choices))) + 1000
    slowest = int(times.argmax())
    yield _case("from the slowest one, nearly cold", choices, times, slowest, 400, 1.0, rng, judge=_only_down)
    yield _plain(rng)
    yield _seldom(rng)
    yield _hole(rng)
    yield _dead_ends(rng)
    choices, times = _devices(50, 60), rng.integers(1000, 9000, (50, 60))
    for start in rng.integers(times.size, size=2):  # twice: one too many may be the same again
        yield _case("a single proposal", choices, times, int(start), 1, 1.0, rng, judge=_one_proposal)
    few = rng.integers(1000, 9000, (2, 2))
    yield _case("four strategies in all", _devices(2, 2), few, int(few.argmax()), 200, 1e6, rng)
    choices, times, _ = _landscape(rng, 5)
    best = int(times.argmin())
    label = "after a search with other times"
    temperature = 0.3 * times.min()
    yield _case(label, choices, times, best, 500, temperature, rng, again=True, key=AFTER_ANOTHER_CALL)
    yield _trap(rng, limited=True)


def _devices(*numbers: int) -> list[tuple[Config, ...]]:
    """Choices of operators that are not cut: each on one of this many devices."""
    return [tuple(Config(devices=(device,)) for device in range(number)) for number in numbers]


def _plain(rng: np.random.Generator) -> Case:
    """From the best one, where all take nearly as long: so warm a walk takes nearly every step."""
    choices = _devices(*[4] * OPERATORS)
    slower = [np.roll([0, *rng.integers(500, 1000, 3)], rng.integers(4)) for _ in choices]
    times = sum(np.ix_(*slower)) + 1_000_000
    label = "all take nearly as long"
    return _case(label, choices, times, int(times.argmin()), ITERATIONS, 1e5, rng, judge=_far_enough)


def _seldom(rng: np.random.Generator) -> Case:
    """From the best one, where every step away from it takes twice the temperature longer: 14 in 100 are taken."""
    choices, temperature = _devices(*[4] * OPERATORS), 1e5
    slower = [
        np.roll([0, *(2 * temperature * rng.uniform(0.97, 1.03, 3)).astype(int)], rng.integers(4)) for _ in choices
    ]
    times = sum(np.ix_(*slower)) + 1_000_000
    label = "steps away from the quickest one are seldom taken"
    return _case(label, choices, times, int(times.argmin()), ITERATIONS, temperature, rng, judge=_still_warm)


def _hole(rng: np.random.Generator) -> Case:
    """From the best one, where all others take nearly or exactly as long as each other, three temperatures longer."""
    choices, temperature = _devices(*[4] * OPERATORS), 1e5
    times = 1_000_000 + 500 * rng.integers(0, 2, [len(own) for own in choices])
    start = int(rng.integers(times.size))
    times.flat[start] -= int(3 * temperature)
    return _case("from a hole in a plateau", choices, times, start, ITERATIONS // 2, temperature, rng, judge=_goes_on)


def _dead_ends(rng: np.random.Generator) -> Case:
    """The best one is two changes away: from the start, and from the one between, many changes lead into dead ends."""
    choices = _devices(*[2] * 10)
    room = np.zeros([2] * 10, dtype=bool)
    between, best, *others = np.eye(10, dtype=int)[rng.permutation(10)]
    for number, other in enumerate(others):
        room[tuple(other if number % 2 else between + other)] = True
    start, best = np.zeros_like(between), between + best
    room[tuple(start)] = room[tuple(between)] = room[tuple(best)] = True
    times = rng.integers(5000, 9000, room.shape)
    times[tuple(best)] = 1000
    return _case("a walk with dead ends", choices, times, 0, ITERATIONS, 1e6, rng, room=room)


def _far_enough(outcome: Outcome) -> Finding | None:
    """Find out whether the walk comes away from its start as far as chance brings it."""
    wrong, (choices, times, _, start, *_) = _wrong(outcome), outcome.case.arguments[0]
    if wrong:
        return wrong
    begin, walk = (
        np.unravel_index(number, times.shape) for number in (_number(outcome, start), outcome.results[0]["walk"])
    )
    changes = sum(np.mean(now != before) for now, before in zip(walk, begin, strict=True))
    expected = sum(1 - 1 / len(own) for own in choices)
    if changes > 0.85 * expected:
        return None
    words = "on average, a simulated strategy is {got:.1f} changes away from the start; {expected:.1f} is expected"
    return own("too-near", words, got=changes, expected=expected)


def _landscape(rng: np.random.Generator, operators: int) -> tuple[list[tuple[Config, ...]], Whole, Whole]:
    """The choices of a drawn graph's operators; of all strategies the times, and the bytes on each device."""
    graph = random_graph(rng, operators)
    tables = make_tables(graph, random_costs(rng, graph, (AMPLE,) * DEVICES), DEVICES)
    sizes = tuple(map(len, tables.choices))
    columns = np.stack(np.unravel_index(np.arange(prod(sizes)), sizes))
    used = sum(memory[:, chosen] for memory, chosen in zip(tables.memory, columns, strict=True))
    return list(tables.choices), tables.makespans(columns).reshape(sizes), used


def _case(
    label: str,
    choices: list[tuple[Config, ...]],
    times: Whole,
    start: int,
    iterations: int,
    temperature: float,
    rng: np.random.Generator,
    room: Bits | None = None,
    judge: Callable = _wrong,
    again: bool = False,
    key: str = "",
) -> Case:
    """A walk from strategy number `start`; `again`: after another, with other times."""
    begin = tuple(own[number] for own, number in zip(choices, np.unravel_index(start, times.shape), strict=True))
    room = np.ones(times.shape, dtype=bool) if room is None else room
    seed = int(rng.integers(2**31))
    given = (choices, times, room, begin if iterations < 500 else list(begin), iterations, float(temperature), seed)
    return Case(label, [given], with_comm=False, harness=walked_again if again else walked, judge=judge, key=key)


def _trap(rng: np.random.Generator, limited: bool) -> Case:
    """A graph with a start from which no single change helps, and an optimum that a right walk comes to in any case."""
    while True:
        choices, times, used = _landscape(rng, OPERATORS)
        room = np.ones(times.shape, dtype=bool)
        if limited:  # not enough for the best of all
            limits = used[:, times.argmin()].max() * rng.uniform(0.8, 0.97, DEVICES)
            room = (used <= limits[:, None]).all(axis=0).reshape(times.shape)
        reachable = np.where(room, times, NEVER)
        starts = traps(reachable)
        if not len(starts):
            continue
        start = int(starts[rng.integers(len(starts))])
        temperature = rng.uniform(*WARM) * times.flat[start]
        if easy(rng, reachable, start, temperature):
            label = f"{count(len(choices), 'operator')}{', little memory' if limited else ''}"
            return _case(label, choices, times, start, ITERATIONS, temperature, rng, room)


def traps(times: Whole) -> Whole:
    """Numbers of strategies, not the best, from which every change of one operator leads to one that is no quicker."""
    lowest = np.logical_and.reduce([times == times.min(axis=axis, keepdims=True) for axis in range(times.ndim)])
    return np.flatnonzero(lowest & (times > times.min()) & (times < NEVER))


def easy(rng: np.random.Generator, times: Whole, start: int, temperature: float) -> bool:
    """Whether all of many walks, a third as long, meet the best strategy, and few stay there."""
    at = np.repeat(np.array(np.unravel_index(start, times.shape))[:, None], WALKS, axis=1)
    now, every = times[tuple(at)], np.arange(WALKS)
    least, movable = now.copy(), np.flatnonzero(np.array(times.shape) > 1)
    for proposals in range(ITERATIONS // 3):
        met = (least == times.min()).mean()
        if met == 1 or (met < 0.3 and proposals == ITERATIONS // 12):
            break
        chosen, proposed = rng.choice(movable, WALKS), at.copy()
        proposed[chosen, every] = rng.integers(np.array(times.shape)[chosen])
        new = times[tuple(proposed)]
        accepted = new - now <= temperature * rng.exponential(size=WALKS)
        at, now = np.where(accepted, proposed, at), np.where(accepted, new, now)
        least = np.minimum(least, now)
    return bool(met == 1 and (now == times.min()).mean() < 0.3)


def _times(outcome: Outcome) -> Whole:
    """The time of each strategy that was simulated."""
    return outcome.case.arguments[0][1].flat[outcome.results[0]["walk"]]


def _praise(outcome: Outcome) -> str:
    begin, end = (seconds_text(int(time) / 1e9) for time in (_times(outcome)[0], outcome.results[0]["takes"]))
    return f"the optimum every time; the last walk began at {begin} a step, its best takes {end}"


def _drawing(outcome: Outcome) -> "Figure | None":
    """What the learner's walk simulated, and the optimum."""
    from course_utils.lessons.strategy_search import pictures

    result = outcome.results[0]
    if not isinstance(result, dict) or len(result.get("walk", ())) < 2:
        return None
    _, times, room, *_ = outcome.case.arguments[0]
    walk = _times(outcome)[:ITERATIONS]
    title = "What your walk simulated, and the quickest strategy that fits"
    return pictures.cost_over_iterations({"proposals": [walk]}, title, int(times[room].min()), outcome.case.label)


EXERCISE = Exercise(
    library="search.metropolis",
    number=5,
    minutes=15,
    difficulty=2,
    turn="propose, simulate, accept or not; remember the best",
    title="the search for the best strategy",
    cases=_cases,
    hints=(
        "You have to remember two strategies, the one where the walk is, and the best one so far. What happens to each "
        "of them if a proposal is faster, if it is slower and accepted, and if it is rejected? And which proposals "
        "are not even simulated?",
        "Begin with `now, time = list(start), makespan_of(start)` and `best, least = now, time`. In a loop, `propose` "
        "a strategy. If it doesn't fit, `continue` with the next. Simulate it once. If "
        "`metropolis_accept(time, new, temperature, random)` is True, the walk goes there. If `new < least`, it is the "
        "best so far.",
    ),
    praise=_praise,
    drawing=_drawing,
)

"""The check of `propose`: thousands of proposals, each one configuration away, and none of them left out."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.strategy_search.checks.common import NOTHING, OTHER_RANDOM, far_off, shown
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.simulator.random_graphs import random_graph
from course_utils.words import count

NO_LIST = "a list with a configuration for each operator is expected"


def proposals(
    function: Callable, strategy: Strategy, choices: Sequence[Sequence[Config]], tries: int, seed: int
) -> Any:
    """Runs on a rank: the numbers of the choices proposed, many times, and whether an equal generator gives the same.

    The first call is with twice as many operators, in reverse. What is wrong in its form is told as a text.
    """
    function((strategy * 2)[::-1], (choices * 2)[::-1], np.random.default_rng(seed))
    before, rounds = list(strategy), []
    for times in (tries, 50):
        random = np.random.default_rng(seed)
        found: list[tuple[int, int]] = []
        for _ in range(times):
            made = function(strategy, choices, random)
            if list(strategy) != before:
                return "the strategy that was given was changed"
            if made is None:
                return f"the function {NOTHING}; {NO_LIST}"
            if not isinstance(made, list | tuple) or len(made) != len(before):
                return f"the function returned {shown(made)}; {NO_LIST}"
            for number, (config, own) in enumerate(zip(made, choices, strict=True)):
                if config not in own:
                    return f"operator {number} got {shown(config)}, which is none of its choices"
            moved = [number for number, (new, old) in enumerate(zip(made, before, strict=True)) if new != old]
            if len(moved) > 1:
                return f"operators {', '.join(map(str, moved))} were changed at once"
            if not moved:
                return "the strategy itself was proposed"
            found.append((moved[0], choices[moved[0]].index(made[moved[0]])))
        rounds.append(found)
    return {"moves": rounds[0], "again": rounds[0][:50] == rounds[1]}


def _wrong(outcome: Outcome) -> str | None:
    found = outcome.results[0]
    if isinstance(found, str):
        return found
    strategy, choices, tries, _ = outcome.case.arguments[0]
    drawn, moves = Counter(number for number, _ in found["moves"]), Counter(map(tuple, found["moves"]))
    movable = [number for number, own in enumerate(choices) if len(own) > 1]
    for number in movable:
        if not drawn[number]:
            return f"operator {number} was never drawn in {tries} tries"
    for number in movable:
        if far_off(drawn[number], tries, 1 / len(movable)):
            often = f"{drawn[number]} of {tries} times, expected about {tries / len(movable):.0f}"
            return f"operator {number} was drawn {often}"
    for number in movable:
        given = {index: moves[number, index] for index, one in enumerate(choices[number]) if one != strategy[number]}
        wrong = _unevenly(given, drawn[number])
        if wrong:
            return f"operator {number} {wrong}"
    return None if found["again"] else f"the proposals {OTHER_RANDOM}"


def _unevenly(given: dict[int, int], draws: int) -> str | None:
    """Whether the configurations of an operator are not all equally likely.

    Args:
        given: how often each was given, in this many draws.
    """
    wrong = [index for index in given if far_off(given[index], draws, 1 / len(given))]
    if not wrong:
        return None
    if max(given.values()) == draws:
        return f"always got configuration {max(given, key=given.__getitem__)}, and has {len(given)} to choose from"
    never = [index for index in wrong if not given[index]]
    if never:
        return f"never got configuration {never[0]}, in {draws} draws"
    return f"got configuration {wrong[0]} in {given[wrong[0]]} of {draws} draws, expected in {draws / len(given):.0f}"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, operators: int, devices: int, change: Callable = lambda *given: given) -> Case:
        choices = choices_of(random_graph(rng, operators), devices)
        strategy, choices = change([own[rng.integers(len(own))] for own in choices], choices)
        given = (strategy, choices, 500 if ", in " in label else 2000, int(rng.integers(2**31)))
        label = f"{count(len(strategy), 'operator')} on {devices} devices{label}"
        return Case(label, [given], with_comm=False, harness=proposals, judge=_wrong)

    yield case(", of which each can change", 5, 2, lambda strategy, choices: (strategy[1:], choices[1:]))
    yield case("", 3, 2)
    yield case(", one without choice and one with two", 6, 2, _few_choices)
    yield case("", 5, 3)
    yield case(", in a tuple", int(rng.integers(4, 8)), 2, lambda strategy, choices: (tuple(strategy), choices))
    yield case(", in other objects than the choices", 6, 2, lambda strategy, choices: (deepcopy(strategy), choices))
    yield case(", in lists as are the choices", 5, 2, lambda strategy, choices: (strategy, list(map(list, choices))))


def _few_choices(strategy: list[Config], choices: list[tuple[Config, ...]]) -> tuple:
    choices[3], strategy[3] = (Config(),), Config()
    choices[2], strategy[2] = choices[2][:2], choices[2][0]
    return strategy, choices


EXERCISE = Exercise(
    library="search.metropolis",
    place=4,
    minutes=10,
    difficulty=1,
    turn="a copy in which one operator has another of its configurations",
    title="a strategy one step away",
    cases=_cases,
    hints=(
        "Which operators can change at all? When one of them is drawn, which configurations are left for it? And who "
        "else holds the list that you were given?",
        "Draw a number out of those with `len(choices[number]) > 1` by `random.choice(…)`, and a configuration out of "
        "`choices[number]` without `strategy[number]` by `random.integers(len(…))`. Put it into `list(strategy)`.",
    ),
    limit=10.0,
    praise=lambda outcome: (
        "one operator, another configuration, each as likely as the next; the strategy that was given stays as it is"
    ),
)

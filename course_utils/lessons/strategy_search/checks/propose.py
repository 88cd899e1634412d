"""The check of `propose`: thousands of proposals, each one configuration away, and none of them left out."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import raised, says
from course_utils.lessons.strategy_search.checks import LESSON
from course_utils.lessons.strategy_search.checks.common import (
    FORGOT,
    NOTHING,
    OTHER_RANDOM,
    OWN_RANDOM,
    drawn_strategy,
    far_off,
    shown,
)
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.simulator.random_graphs import random_graph
from course_utils.words import count

TRIES = 4000
NO_LIST = "a list with a configuration for each operator is expected"
UNKNOWN, UNMOVED, MOVED = "which is none of its choices", "the strategy itself was proposed", "were changed at once"
CHANGED = "the strategy that was given was changed"
DRAWN, GIVEN = "was drawn", "was given"


def proposals(function: Callable, strategy: list[Config], choices: list[tuple[Config, ...]], seed: int) -> Any:
    """Runs on a rank: the numbers of the choices proposed, many times, and whether an equal generator gives the same.

    What is wrong in its form is told as a text.
    """
    before, rounds = list(strategy), []
    for _ in range(2):
        random = np.random.default_rng(seed)
        found: list[tuple[int, ...]] = []
        for _ in range(TRIES if not rounds else 50):
            made = function(strategy, choices, random)
            if strategy != before:
                return CHANGED
            if made is None:
                return f"the function {NOTHING}; {NO_LIST}"
            if not isinstance(made, list | tuple) or len(made) != len(before):
                return f"the function returned {shown(made)}; {NO_LIST}"
            for number, (config, own) in enumerate(zip(made, choices, strict=True)):
                if config not in own:
                    return f"operator {number} got {shown(config)}, {UNKNOWN}"
            moved = [number for number, (new, old) in enumerate(zip(made, before, strict=True)) if new != old]
            if len(moved) > 1:
                return f"operators {', '.join(map(str, moved))} {MOVED}"
            if not moved:
                return UNMOVED
            found.append((moved[0], choices[moved[0]].index(made[moved[0]])))
        rounds.append(found)
    return {"moves": [list(move) for move in rounds[0]], "again": rounds[0][:50] == rounds[1]}


def _wrong(outcome: Outcome) -> str | None:
    found = outcome.results[0]
    if isinstance(found, str):
        return found
    strategy, choices, _ = outcome.case.arguments[0]
    movable = [number for number, own in enumerate(choices) if len(own) > 1]
    by_operator = Counter(move[0] for move in found["moves"])
    for number in movable:
        if far_off(by_operator[number], TRIES, 1 / len(movable)):
            expected = f"expected about {TRIES / len(movable):.0f}"
            return f"operator {number} {DRAWN} {by_operator[number]} of {TRIES} times, {expected}"
    moves = Counter(map(tuple, found["moves"]))
    for number in movable:
        for index, config in enumerate(choices[number]):
            times, others = moves[number, index], len(choices[number]) - 1
            if config != strategy[number] and far_off(times, by_operator[number], 1 / others):
                expected = f"expected about {by_operator[number] / others:.0f}"
                return f"configuration {index} of operator {number} {GIVEN} {times} times, {expected}"
    return None if found["again"] else f"the proposals {OTHER_RANDOM}"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    for operators, devices in ((4, 2), (3, 2), (6, 2), (5, 3), (int(rng.integers(4, 8)), 2)):
        graph = random_graph(rng, operators)
        choices = choices_of(graph, devices)
        strategy = drawn_strategy(rng, graph, devices)
        if operators == 6:  # one more that has no choice, in the middle, and one that has two
            choices[3], strategy[3] = (Config(),), Config()
            choices[2], strategy[2] = choices[2][:2], choices[2][0]
        given = (strategy, choices, int(rng.integers(2**31)))
        label = f"{count(operators, 'operator')} on {devices} devices"
        yield Case(label, [given], with_comm=False, harness=proposals, judge=_wrong)


def _operators_drawn(outcome: Outcome) -> set[int]:
    return {move[0] for move in outcome.results[0]["moves"]}


def _some_never(case: Case, outcome: Outcome) -> bool:
    movable = {number for number, own in enumerate(case.arguments[0][1]) if len(own) > 1}
    return DRAWN in outcome.wrong and _operators_drawn(outcome) != movable


def _choice_never(case: Case, outcome: Outcome) -> bool:
    strategy, choices, _ = case.arguments[0]
    all_moves = {(n, i) for n, own in enumerate(choices) for i, config in enumerate(own) if config != strategy[n]}
    return GIVEN in outcome.wrong and {tuple(move) for move in outcome.results[0]["moves"]} != all_moves


def _one_after_the_other(case: Case, outcome: Outcome) -> bool:
    """Whether an operator that is drawn always gets the same configuration."""
    moves = outcome.results[0]["moves"]
    return GIVEN in outcome.wrong and len({tuple(move) for move in moves}) == len(_operators_drawn(outcome))


def _no_choice(case: Case, outcome: Outcome) -> bool:
    endless = "not finished" in outcome.wrong
    return endless or any(raised(outcome, words) for words in ("high <= 0", "empty", "low >= high"))


PROPOSE = Exercise(
    name="propose",
    library="course_utils.lessons.strategy_search.search.metropolis:propose",
    lesson=LESSON,
    place=4,
    minutes=10,
    difficulty=1,
    turn="a copy in which one operator has another of its configurations",
    title="a strategy one step away",
    cases=_cases,
    picture=False,
    hints=(
        "Which operators can change at all? When one of them is drawn, which configurations are left for it? And who "
        "else holds the list that you were given?",
        "Draw a number out of those with `len(choices[number]) > 1` by `random.choice(…)`, and a configuration out of "
        "`choices[number]` without `strategy[number]` by `random.integers(len(…))`. Put it into `list(strategy)`.",
    ),
    mistakes=(
        FORGOT,
        Mistake("Who else holds the list that you change?", says(CHANGED)),
        Mistake("What is proposed for an operator that has no other configuration?", _no_choice),
        Mistake("Do you return the whole strategy, with a configuration for each operator?", says(NO_LIST)),
        Mistake("Whose configurations does an operator get?", says(UNKNOWN)),
        Mistake("How many operators does one proposal change?", says(MOVED)),
        Mistake("Can the operator get the configuration that it has?", says(UNMOVED)),
        Mistake("Which operators are never drawn?", _some_never),
        Mistake("Is an operator with many configurations drawn more often?", says(DRAWN)),
        Mistake("To how many of an operator's configurations does one step lead?", _one_after_the_other),
        Mistake("Which configurations are never given?", _choice_never),
        Mistake("Is each other configuration as likely as the next?", says(GIVEN)),
        OWN_RANDOM,
    ),
    praise=lambda outcome: (
        "one operator, another configuration, each as likely as the next; the strategy that was given stays as it is"
    ),
)

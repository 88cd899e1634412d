"""The check of `propose`: thousands of proposals, each one configuration away, and none of them left out."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.run_cases import changed_argument
from course_utils.lessons.strategy_search.checks.common import (
    RETURNED_NOTHING,
    far_off,
    form_finding,
    malformed,
    not_repeatable,
    shown,
)
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.simulator.random_graphs import random_graph
from course_utils.words import count

CHANGED = "strategy-changed"
NO_STRATEGY = "your function returned {shown}; a list with a configuration for each operator is expected"
WORDS = {
    RETURNED_NOTHING: NO_STRATEGY,
    "no-strategy": NO_STRATEGY,
    "not-a-choice": "operator {operator} got {shown}, which isn't one of its choices",
    "several-changed": "operators {operators} were all changed in one proposal",
    "unchanged": "the strategy was proposed again without a change",
}


def proposals(
    function: Callable, strategy: Strategy, choices: Sequence[Sequence[Config]], tries: int, seed: int
) -> Any:
    """Runs on a rank: the numbers of the choices proposed, many times, and whether an equal generator gives the same.

    The first call is with twice as many operators, in reverse. What is of another form is `malformed`.
    """
    function((strategy * 2)[::-1], (choices * 2)[::-1], np.random.default_rng(seed))
    before, rounds = list(strategy), []
    for times in (tries, 50):
        random = np.random.default_rng(seed)
        found: list[tuple[int, int]] = []
        for _ in range(times):
            made = function(strategy, choices, random)
            if list(strategy) != before:
                return malformed(CHANGED)
            if not isinstance(made, list) or len(made) != len(before):
                return malformed(RETURNED_NOTHING if made is None else "no-strategy", shown=shown(made))
            for number, (config, configs) in enumerate(zip(made, choices, strict=True)):
                if config not in configs:
                    return malformed("not-a-choice", operator=number, shown=shown(config))
            moved = [number for number, (new, old) in enumerate(zip(made, before, strict=True)) if new != old]
            if len(moved) > 1:
                return malformed("several-changed", operators=", ".join(map(str, moved)))
            if not moved:
                return malformed("unchanged")
            found.append((moved[0], choices[moved[0]].index(made[moved[0]])))
        rounds.append(found)
    return {"moves": rounds[0], "again": rounds[0][:50] == rounds[1]}


def _wrong(outcome: Outcome) -> Finding | None:
    found = outcome.results[0]
    if found.get("malformed") == CHANGED:
        return changed_argument(0, "strategy")
    if wrong := form_finding(found, WORDS):
        return wrong
    strategy, choices, tries, _ = outcome.case.arguments[0]
    drawn, moves = Counter(number for number, _ in found["moves"]), Counter(map(tuple, found["moves"]))
    movable = [number for number, own in enumerate(choices) if len(own) > 1]
    if len(moves) == 1 and sum(len(choices[number]) - 1 for number in movable) > 1:
        return own("one-proposal", "the same change was proposed in all of {tries} calls", tries=tries)
    if len(drawn) == 1 and len(movable) > 1:
        words = "operator {operator} was changed in all of {tries} calls, and no other one ever"
        return own("one-operator", words, operator=next(iter(drawn)), tries=tries)
    for number in movable:
        if not drawn[number]:
            return own(
                "never-drawn", "operator {operator} was never changed in {tries} calls", operator=number, tries=tries
            )
    for number in movable:
        if far_off(drawn[number], tries, 1 / len(movable)):
            words = "operator {operator} was changed in {got} of {tries} calls, and about {expected:.0f} are expected"
            often = {"got": drawn[number], "expected": tries / len(movable), "tries": tries}
            return own("drawn-unevenly", words, operator=number, **often)
    for number in movable:
        given = {
            index: moves[number, index] for index, config in enumerate(choices[number]) if config != strategy[number]
        }
        if wrong := _unevenly(number, given, drawn[number]):
            return wrong
    return None if found["again"] else not_repeatable("proposals")


def _unevenly(operator: int, given: dict[int, int], draws: int) -> Finding | None:
    """Find out whether the configurations of an operator are not all equally likely.

    Args:
        given: how often each was given, in this many draws.
    """
    subject = "operator {operator}"
    wrong = [index for index in given if far_off(given[index], draws, 1 / len(given))]
    if not wrong:
        return None
    if max(given.values()) == draws:
        words = f"{subject} got configuration {{got}} every time, although it could get any of {{choices}}"
        always = max(given, key=given.__getitem__)
        return own("always-the-same", words, operator=operator, got=always, choices=len(given))
    never = [index for index in wrong if not given[index]]
    if never:
        words = f"{subject} was changed {{draws}} times, and never got configuration {{expected}}"
        return own("never-given", words, operator=operator, expected=never[0], draws=draws)
    words = f"{subject} was changed {{draws}} times, and got configuration {{configuration}} in {{got}} of them; "
    words += "about {expected:.0f} are expected"
    often = {"got": given[wrong[0]], "expected": draws / len(given), "draws": draws}
    return own("given-unevenly", words, operator=operator, configuration=wrong[0], **often)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        operators: int,
        devices: int,
        change: Callable = lambda *given: given,
        key: str = "",
        tries: int = 1996,  # a counter that is kept between calls is never where it was: 1997 and 509 are prime
    ) -> Case:
        choices = choices_of(random_graph(rng, operators), devices)
        strategy, choices = change([own[rng.integers(len(own))] for own in choices], choices)
        given = (strategy, choices, tries, int(rng.integers(2**31)))
        label = f"{count(len(strategy), 'operator')} on {devices} devices{label}"
        return Case(label, [given], with_comm=False, harness=proposals, judge=_wrong, key=key)

    yield case(", of which each can change", 5, 2, lambda strategy, choices: (strategy[1:], choices[1:]))
    yield case("", 3, 2)
    yield case(", one without choice and one with two", 6, 2, _few_choices)
    yield case("", 5, 3)
    some = int(rng.integers(4, 8))
    yield case(", in a tuple", some, 2, lambda strategy, choices: (tuple(strategy), choices), "tuple", 508)
    other = ", in other objects than the choices"
    yield case(other, 6, 2, lambda strategy, choices: (deepcopy(strategy), choices), tries=508)
    lists = ", in lists as are the choices"
    yield case(lists, 5, 2, lambda strategy, choices: (strategy, list(map(list, choices))), "lists", 508)


def _few_choices(strategy: list[Config], choices: list[tuple[Config, ...]]) -> tuple:
    choices[3], strategy[3] = (Config(),), Config()
    choices[2], strategy[2] = choices[2][:2], choices[2][0]
    return strategy, choices


EXERCISE = Exercise(
    library="search.metropolis",
    number=4,
    minutes=10,
    difficulty=1,
    turn="a copy in which one operator has another of its configurations",
    title="a strategy one step away",
    cases=_cases,
    hints=(
        "Which operators can change at all? After you have drawn one, which configurations can it get? And what would "
        "happen to the caller's list if you changed it?",
        "First collect the numbers of the operators with `len(choices[number]) > 1`, and draw one with "
        "`random.choice(…)`. Then collect its configurations without `strategy[number]`, and draw one with "
        "`random.integers(len(…))`. Put it into a copy, `list(strategy)`.",
    ),
    limit=10.0,
    praise=lambda outcome: (
        "one operator, another configuration, each as likely as the next; the strategy that was given stays as it is"
    ),
)

"""The check of `metropolis_accept`: how often it says yes, over thousands of draws, for better, equal and worse."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.strategy_search.checks.common import (
    RETURNED_NOTHING,
    far_off,
    form_finding,
    malformed,
    not_repeatable,
    shown,
)

NO_BOOL = "no-bool"
WORDS = dict.fromkeys((RETURNED_NOTHING, NO_BOOL), "your function returned {shown}, and True or False is expected")


def how_often(function: Callable, old: float, new: float, temperature: float, tries: int, seed: int) -> dict[str, Any]:
    """Runs on a rank: how often it said yes, whether it drew, and whether an equal generator gives the same again."""
    answers: list[list[bool]] = []
    for _ in range(2):
        random = np.random.default_rng(seed)
        fresh = random.bit_generator.state
        answers.append([])
        for _ in range(100 if answers[1:] else tries):
            answer = function(old, new, temperature, random)
            if not isinstance(answer, bool | np.bool_):
                return malformed(RETURNED_NOTHING if answer is None else NO_BOOL, shown=shown(answer))
            answers[-1].append(bool(answer))
    drawn = random.bit_generator.state != fresh
    return {"yes": sum(answers[0]), "drawn": drawn, "again": answers[0][:100] == answers[1]}


def probability(old: float, new: float, temperature: float) -> float:
    """With which a strategy is accepted."""
    if new <= old:
        return 1.0
    return math.exp(-min((new - old) / temperature, 700.0)) if temperature > 0 else 0.0


def _wrong(outcome: Outcome) -> Finding | None:
    found = outcome.results[0]
    if wrong := form_finding(found, WORDS):
        return wrong
    old, new, temperature, tries, _ = outcome.case.arguments[0]
    wanted = probability(old, new, temperature)
    if far_off(found["yes"], tries, wanted):
        by_chance = 0 < wanted < 1
        key = "nothing-drawn" if by_chance and not found["drawn"] else "how-often"
        if key == "how-often" and new > old and found["yes"] in (0, tries):
            key = "always" if found["yes"] else "never"
        return own(
            key,
            "at a temperature of {temperature:g} ns, a strategy of {new} ns was accepted instead of one of {old} ns in "
            f"{{got}} of {{tries}} calls, and {'about ' if by_chance else ''}{{expected:.0f}} are expected"
            f"{'' if found['drawn'] else '; nothing was drawn from `random`'}",
            got=found["yes"],
            expected=tries * wanted,
            **{"old": old, "new": new, "temperature": temperature, "tries": tries, "drawn": found["drawn"]},
        )
    return None if found["again"] else not_repeatable("answers")


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, old: float, new: float, temperature: float, key: str = "", tries: int = 0) -> Case:
        by_chance = 1e-6 < probability(old, new, temperature) < 1
        tries = tries or (4000 if by_chance else 400)
        given = (old, new, temperature, tries, int(rng.integers(2**31)))
        return Case(label, [given], with_comm=False, harness=how_often, judge=_wrong, key=key)

    old = int(rng.integers(20_000, 90_000))
    warm = int(rng.uniform(0.3, 0.4) * old)
    yield case("quicker", old, old - warm // 3, warm, "quicker")
    yield case("a little slower", old, old + warm // 4, warm)
    yield case("slower", old, old + round(1.7 * warm), warm)
    yield case("much slower", old, old + round(2.5 * warm), warm)
    yield case("so slow that 1 in 1000 is accepted", old, old + round(math.log(1000) * warm), warm, tries=60_000)
    yield case("equally quick", old, old, warm)
    yield case("times that are not whole numbers", 3.25, 3.75, float(rng.uniform(0.3, 0.9)))
    yield case("very much quicker", old * 10**6, old, warm / 1000, "quicker")
    yield case("very much slower", old, old * 10**6, warm / 1000)
    yield case("temperature 0, slower", old, old + 1, 0, "temperature-0")
    yield case("temperature 0, quicker", old, old - 1, 0, "temperature-0")
    yield case("temperature 0, equally quick", old, old, 0, "temperature-0")
    day = 86_400 * 10**9
    yield case("a little slower, of a step that takes a day", day, day + 100, 100, "long-step")
    warm = float(rng.uniform(0.3, 0.9)) * old
    yield case("slower, warm", old, old + int(rng.uniform(0.5, 1.5) * warm), warm)


def _praise(outcome: Outcome) -> str:
    old, new, temperature, tries, _ = outcome.case.arguments[0]
    wanted = probability(old, new, temperature)
    return (
        f"quicker ones always, slower ones by chance: the last, slower by {(new - old) / temperature:.2f} temperatures,"
        f" {outcome.results[0]['yes'] / tries:.1%} of the time, expected {wanted:.1%}"
    )


EXERCISE = Exercise(
    library="search.metropolis",
    number=3,
    minutes=8,
    difficulty=1,
    turn="quicker ones always, slower ones with the probability of Metropolis",
    title="whether to go on with a slower strategy",
    cases=_cases,
    hints=(
        "For which strategies is the answer certain? For the others, how can a random number between 0 and 1 give True "
        "with probability p? And what happens to your formula at temperature 0?",
        "If `new <= old`, return True. Otherwise, if the temperature is above 0, return whether `random.random()` is "
        "less than `math.exp(-(new - old) / temperature)`.",
    ),
    praise=_praise,
)

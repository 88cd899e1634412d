"""The check of `metropolis_accept`: how often it says yes, over thousands of draws, for better, equal and worse."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, says
from course_utils.lessons.strategy_search.checks import LESSON
from course_utils.lessons.strategy_search.checks.common import FORGOT, NOTHING, OTHER_RANDOM, OWN_RANDOM, far_off, shown

TRIES = 4000
NO_BOOL = "expected True or False"
ACCEPTED = "was accepted"


def how_often(function: Callable, old: int, new: int, temperature: float, seed: int) -> dict[str, Any] | str:
    """Runs on a rank: how often it said yes, and whether it says the same again with an equal generator."""
    answers: list[list[bool]] = []
    for _ in range(2):
        random = np.random.default_rng(seed)
        answers.append([])
        for _ in range(TRIES):
            answer = function(old, new, temperature, random)
            if answer is None:
                return f"the function {NOTHING}, {NO_BOOL}"
            if not isinstance(answer, bool | np.bool_):
                return f"the function returned {shown(answer)}, {NO_BOOL}"
            answers[-1].append(bool(answer))
    return {"yes": sum(answers[0]), "again": answers[0] == answers[1]}


def probability(old: float, new: float, temperature: float) -> float:
    """With which a strategy is accepted."""
    if new <= old:
        return 1.0
    return math.exp(-min((new - old) / temperature, 700.0)) if temperature > 0 else 0.0


def _wrong(outcome: Outcome) -> str | None:
    found = outcome.results[0]
    if isinstance(found, str):
        return found
    old, new, temperature, _ = outcome.case.arguments[0]
    wanted = probability(old, new, temperature)
    if far_off(found["yes"], TRIES, wanted):
        expected = f"{TRIES * wanted:.0f}" if wanted in (0.0, 1.0) else f"about {TRIES * wanted:.0f}"
        said = f"a step of {new} ns in place of {old} ns, at temperature {temperature:g} ns,"
        return f"{said} {ACCEPTED} {found['yes']} of {TRIES} times, expected {expected}"
    return None if found["again"] else f"the answers {OTHER_RANDOM}"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, old: int, new: int, temperature: float) -> Case:
        given = (old, new, temperature, int(rng.integers(2**31)))
        return Case(label, [given], with_comm=False, harness=how_often, judge=_wrong)

    old = int(rng.integers(20_000, 90_000))
    warm = int(rng.uniform(0.3, 0.4) * old)
    yield case("quicker", old, old - warm // 3, warm)
    yield case("slower", old, old + round(1.7 * warm), warm)
    yield case("a little slower", old, old + warm // 4, warm)
    yield case("much slower", old, old + round(2.5 * warm), warm)
    yield case("equally quick", old, old, warm)
    yield case("temperature below 1", 3, 4, 0.8)
    yield case("very much quicker", old * 10**6, old, warm / 1000)
    yield case("very much slower", old, old * 10**6, warm / 1000)
    yield case("temperature 0, slower", old, old + 1, 0)
    yield case("temperature 0, quicker", old, old - 1, 0)
    yield case("temperature 0, equally quick", old, old, 0)
    warm = float(rng.uniform(0.3, 0.9)) * old
    yield case("slower, warm", old, old + int(rng.uniform(0.5, 1.5) * warm), warm)


def _yes(outcome: Outcome) -> int:
    return outcome.results[0]["yes"]


def _as(other: Callable[[float, float, float], float]) -> Recogniser:
    """A recogniser of how often another probability says yes."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        old, new, temperature, _ = case.arguments[0]
        chance = min(1.0, max(0.0, other(old, new, temperature)))
        return ACCEPTED in outcome.wrong and temperature > 0 and not far_off(_yes(outcome), TRIES, chance)

    return recognises


def _exp(power: float) -> float:
    return math.exp(max(-700.0, min(power, 0.0)))


def _at_zero(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][2] == 0


def _better_refused(case: Case, outcome: Outcome) -> bool:
    old, new, *_ = case.arguments[0]
    return new < old


def _no_chance(case: Case, outcome: Outcome) -> bool:
    """Whether it says yes always where chance should decide."""
    return _yes(outcome) == TRIES


def _never_slower(case: Case, outcome: Outcome) -> bool:
    return _yes(outcome) == 0 and case.arguments[0][1] > case.arguments[0][0]


def _praise(outcome: Outcome) -> str:
    old, new, temperature, _ = outcome.case.arguments[0]
    wanted = probability(old, new, temperature)
    return (
        f"quicker ones always, slower ones by chance: the last, slower by {(new - old) / temperature:.2f} temperatures,"
        f" {_yes(outcome) / TRIES:.1%} of the time, expected {wanted:.1%}"
    )


METROPOLIS_ACCEPT = Exercise(
    name="metropolis_accept",
    library="course_utils.lessons.strategy_search.search.metropolis:metropolis_accept",
    lesson=LESSON,
    place=3,
    minutes=8,
    difficulty=1,
    turn="quicker ones always, slower ones with the probability of Metropolis",
    title="whether to go on with a slower strategy",
    cases=_cases,
    picture=False,
    hints=(
        "Which answer needs no chance at all? For the rest: with which probability is `random.random()`, which lies "
        "evenly between 0 and 1, smaller than p? And what happens to your formula at temperature 0?",
        "If `new <= old`, True. Else, at a temperature above 0, whether `random.random()` is less than "
        "`math.exp(-(new - old) / temperature)`.",
    ),
    mistakes=(
        FORGOT,
        Mistake("Is the answer a probability, or yes or no?", says(NO_BOOL)),
        Mistake(
            "How large does the exponential become where the new strategy is very much quicker?",
            lambda case, outcome: raised(outcome, "OverflowError") or raised(outcome, "math range"),
        ),
        Mistake("What is accepted at temperature 0?", _at_zero),
        Mistake("Is a quicker strategy always accepted?", _better_refused),
        OWN_RANDOM,
        Mistake("Is a slower strategy sometimes accepted?", _never_slower),
        Mistake("Does chance decide about slower ones?", _no_chance),
        Mistake("On which side of the probability is yes?", _as(lambda o, n, t: 1 - _exp((o - n) / t))),
        Mistake("By what is the difference divided?", _as(lambda o, n, t: _exp((o - n) / o))),
        Mistake("Is it 2 or e to which a power is taken?", _as(lambda o, n, t: 2.0 ** max(-900.0, (o - n) / t))),
        Mistake("How does the probability fall with the difference?", says(ACCEPTED)),
    ),
    praise=_praise,
)

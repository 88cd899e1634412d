"""The check of `scaling_efficiency`: strong and weak, and refusals."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, error_of, nothing_returned, same
from course_utils.lessons.overlap.checks import LESSON
from course_utils.words import ranks

NO_KIND = "sideways"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(alone: float, together: float, size: int, kind: str) -> Case:
        """Shares of all seconds, in ranks × seconds: of use, and spent."""
        useful = alone if kind == "strong" else alone * size
        label = f'alone {alone:.4g} s, {ranks(size)} together {together:.4g} s, "{kind}"'
        given = (alone, together, size, kind)
        return Case(label, [given], [useful / (size * together)], with_comm=False, tolerance=1e-12)

    yield case(8.0, 2.0, 4, "strong")
    yield case(8.0, 8.0, 4, "strong")
    yield case(8.0, 8.0, 4, "weak")
    yield case(8.0, 10.0, 4, "weak")
    for kind in ("strong", "weak"):
        alone = float(rng.uniform(1, 100))
        yield case(alone, alone * float(rng.uniform(1.05, 3)), int(rng.integers(2, 64)), kind)
        yield case(alone, alone * float(rng.uniform(1.05, 3)), 1, kind)
    yield case(12.0, 2.5, 4, "strong")
    yield case(3.0, 1.0, 1, "weak")
    alone = float(rng.uniform(1, 100))
    yield Case("no kind is named", [(alone, 3.0, 8)], [alone / 24.0], with_comm=False, tolerance=1e-12)
    for given in ((8.0, 2.0, 4, NO_KIND), (0.0, 2.0, 4), (8.0, 0.0, 4, "weak"), (8.0, -2.0, 4), (8.0, 2.0, 0)):
        label = f"scaling_efficiency{given}"
        yield Case(label, [given], ["ValueError"], with_comm=False, harness=error_of)


def _formula(formula: Callable[[float, float, int], float], kind: str = "") -> Recogniser:
    """A recogniser of another formula of (alone, together, P), for one kind or for both."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        alone, together, size, *of_kind = case.arguments[0]
        asked = not kind or of_kind == [kind]
        return case.harness is None and asked and same(outcome.results[0], formula(alone, together, size), 1e-12)

    return recognises


def _no_kind(case: Case, outcome: Outcome) -> bool:
    return case.harness is error_of and case.arguments[0][-1] == NO_KIND


def _no_sense(case: Case, outcome: Outcome) -> bool:
    return case.harness is error_of


def _cut_off(case: Case, outcome: Outcome) -> bool:
    return case.expected[0] > 1 and same(outcome.results[0], 1.0)


SCALING_EFFICIENCY = Exercise(
    name="scaling_efficiency",
    library="course_utils.lessons.overlap.scaling:scaling_efficiency",
    lesson=LESSON,
    place=4,
    minutes=5,
    difficulty=1,
    turn="the useful seconds of all ranks, divided by all their seconds",
    title="the share of P ranks' work that is of use",
    cases=_cases,
    picture=False,
    hints=(
        "P ranks, each busy for seconds_together: how many seconds of work did you pay for, and in how many would one "
        "rank have done the same?",
        "Paid: world_size · seconds_together. Of use: seconds_alone where they share one rank's work (strong), "
        "world_size · seconds_alone where each does as much as one (weak). Before that, a ValueError for what makes "
        "no sense.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("What does the docstring promise for a kind that does not exist?", _no_kind),
        Mistake("What does the docstring promise for a number that is not above zero?", _no_sense),
        Mistake("Can an efficiency be above 1, where it is measured?", _cut_off),
        Mistake(
            "Is this the speed-up, or the share of it that P ranks could give?",
            _formula(lambda a, t, p: a / t, "strong"),
        ),
        Mistake("How much work do P ranks do together in weak scaling?", _formula(lambda a, t, p: a / (p * t), "weak")),
        Mistake("Is more time together better, or worse?", _formula(lambda a, t, p: p * t / a, "strong")),
        Mistake("Is more time together better, or worse?", _formula(lambda a, t, p: t / a)),
        Mistake("A share, or percent?", _formula(lambda a, t, p: 100 * a / (p * t))),
    ),
    praise=lambda outcome: "strong and weak scaling, and what makes no sense is refused",
)

"""The check of `scaled_learning_rate`: the rates that torch's own `LinearLR` gives, step after step."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import error_of
from course_utils.lessons.data_parallel.checks import LESSON
from course_utils.lessons.data_parallel.checks.common import same
from course_utils.words import ranks

FACTORS = {"linear": lambda size: size, "sqrt": math.sqrt}
NO_RULE = "cubic"


def rates(function: Callable, base: float, steps: Sequence[int], *rest: object) -> list:
    """The learner's rate at each of these steps."""
    return [function(base, step, *rest) for step in steps]


def by_torch(base: float, steps: int, world_size: int, rule: str, warm_up_steps: int) -> list[float]:
    """The rates of the first `steps` steps, by torch's scheduler."""
    import torch

    scaled = base * FACTORS[rule](world_size)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=scaled)
    if warm_up_steps == 0:
        return [scaled] * steps
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, base / scaled, 1.0, total_iters=warm_up_steps)
    found = []
    for _ in range(steps):
        found.append(float(schedule.get_last_lr()[0]))
        optimizer.step()
        schedule.step()
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(world_size: int, rule: str, warm_up: int, length: int = 12) -> Case:
        base = float(rng.uniform(0.01, 0.5))
        wanted = by_torch(base, length, world_size, rule, warm_up)
        until = f", {warm_up} steps of warm-up" if warm_up else ""
        label = f'base {base:.3g}, {ranks(world_size)}, "{rule}"{until}; one entry per step'
        given = (base, list(range(length)), world_size, rule, warm_up)
        return Case(label, [given], [wanted], with_comm=False, tolerance=1e-9, harness=rates)

    yield case(4, "linear", 0, 3)
    yield case(4, "sqrt", 0, 3)
    yield case(int(rng.integers(3, 100)), "sqrt", 0, 2)
    yield case(4, "linear", 4)
    yield case(int(rng.integers(5, 64)), "linear", 7)
    yield case(16, "sqrt", 5)
    yield case(8, "linear", 1)
    yield case(1, "linear", 5)
    wrong_rule = (0.1, 0, 4, NO_RULE)
    yield Case(f'rule "{NO_RULE}"', [wrong_rule], ["ValueError"], with_comm=False, harness=error_of)


def _numbers(outcome: Outcome) -> list[float]:
    return [] if outcome.results[0] is NO_RESULT else [float(value) for value in outcome.results[0]]


def _formula(formula: Callable[[float, float, int, int], float]) -> Callable[[Case, Outcome], bool]:
    """A recogniser of rates that come from a formula of (base, factor, step, warm_up_steps)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        base, steps, world_size, rule, warm_up = case.arguments[0]
        factor = FACTORS[rule](world_size)
        wanted = [formula(base, factor, step, warm_up) if step < warm_up else base * factor for step in steps]
        return warm_up > 0 and same(_numbers(outcome), wanted, 1e-9)

    return recognises


def _other_factor(factor: Callable[[int], float]) -> Callable[[Case, Outcome], bool]:
    def recognises(case: Case, outcome: Outcome) -> bool:
        base, _, world_size, rule, _ = case.arguments[0]
        last, right = _numbers(outcome)[-1], case.expected[0][-1]
        return not same(last, right, 1e-9) and same(last, base * factor(world_size), 1e-9)

    return recognises


def _unknown_rule(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][-1] == NO_RULE


def _never_arrives(case: Case, outcome: Outcome) -> bool:
    base, _, world_size, rule, warm_up = case.arguments[0]
    return warm_up > 0 and _numbers(outcome)[-1] > base * FACTORS[rule](world_size) * (1 + 1e-9)


def _divides_by_zero(case: Case, outcome: Outcome) -> bool:
    errors = [reply.error for reply in outcome.attempt.replies if reply.error]
    return any(error.type == "ZeroDivisionError" for error in errors)


SCALED_LEARNING_RATE = Exercise(
    name="scaled_learning_rate",
    library="course_utils.lessons.data_parallel.gradients:scaled_learning_rate",
    lesson=LESSON,
    place=4,
    minutes=5,
    difficulty=1,
    turn="one of two rules, and a straight line that leads to it",
    title="the rate for a batch P times as large",
    cases=_cases,
    needs_torch=False,
    picture=False,
    hints=(
        "Two numbers fix the line: at which step is the rate `base`, and at which is it the scaled one? "
        "What is the share of the way that lies behind you at `step`?",
        "scaled = base · P or base · √P; while step < warm_up_steps: base + (scaled − base) · step / warm_up_steps.",
    ),
    mistakes=(
        Mistake("What does the docstring promise for a rule that does not exist?", _unknown_rule),
        Mistake("What is the length of a warm-up that there is not?", _divides_by_zero),
        Mistake("Does the rule ask for P here, or for its square root?", _other_factor(lambda p: p)),
        Mistake("Does the rule ask for P here, or for its square root?", _other_factor(math.sqrt)),
        Mistake("Is the rate to grow with the number of ranks, or to shrink?", _other_factor(lambda p: 1 / p)),
        Mistake("Does the line go on after the last step of the warm-up?", _never_arrives),
        Mistake("Does the climb begin at 0, or at `base`?", _formula(lambda b, f, step, w: b * f * step / w)),
        Mistake("Does the climb begin at 0, or at `base`?", _formula(lambda b, f, step, w: b * f * (step + 1) / w)),
        Mistake(
            "At which step is the rate exactly `base`?", _formula(lambda b, f, s, w: b + b * (f - 1) * (s + 1) / w)
        ),
        Mistake("A straight line, or a curve?", _formula(lambda b, f, step, w: b * f ** (step / w))),
        Mistake("Is `base` held during the warm-up, or does it climb?", _formula(lambda b, f, step, w: b)),
        Mistake("What happens during the warm-up?", _formula(lambda b, f, step, w: b * f)),
    ),
    praise=lambda outcome: "the rates are right for both rules, with warm-up and without",
)

"""The check of `scaled_learning_rate`: a straight line through two points, as NumPy draws it."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import ranks

FACTORS = {"linear": lambda size: size, "sqrt": math.sqrt}


def rates(function: Callable, base: float, steps: Sequence[int], *rest: object) -> list:
    """The learner's rate at each of these steps."""
    return [function(base, step, *rest) for step in steps]


def at_each(steps: Sequence[int]) -> tuple[str, ...]:
    """What the calls for these steps are called."""
    return tuple(f"at step {step}" for step in steps)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(world_size: int, rule: str, warm_up: int, steps: Sequence[int] = range(12)) -> Case:
        base = float(rng.uniform(0.01, 0.5))
        top = base * FACTORS[rule](world_size)
        line = np.interp(steps, [0, warm_up], [base, top]).tolist() if warm_up else [top] * len(steps)
        until = f", {warm_up} steps of warm-up" if warm_up else ""
        in_order = steps == range(len(steps))
        label = f'base {base:.3g}, {ranks(world_size)}, "{rule}"{until}'
        given = (base, list(steps), world_size, rule, warm_up)
        more = {"with_comm": False, "tolerance": 1e-9, "harness": rates, "key": "" if in_order else "in-no-order"}
        return Case(label + ", steps in no order" * (not in_order), [given], [line], calls=at_each(steps), **more)

    yield case(4, "linear", 0, range(3))
    yield case(4, "sqrt", 0, range(3))
    no_square = int(rng.integers(2, 10)) ** 2 + 2
    yield case(no_square, "sqrt", 0, range(2))
    yield case(4, "linear", 5)
    yield case(int(rng.integers(8, 64)), "linear", 7)
    yield case(no_square, "sqrt", 5)
    label = "base 0.3, 8 ranks, neither rule nor warm-up named"
    more = {"with_comm": False, "tolerance": 1e-9, "harness": rates, "key": "defaults", "calls": at_each(range(3))}
    yield Case(label, [(0.3, [0, 1, 2], 8)], [[0.3 * 8] * 3], **more)
    yield case(8, "linear", 1)
    yield case(4096, "linear", 0, range(1))
    yield case(1, "linear", 5)
    warm_up = int(rng.integers(50, 150))
    yield case(no_square, "sqrt", warm_up, [int(step) for step in rng.permutation(200)])
    cubic = [(0.1, 0, 4, "cubic"), (0.1, 2, 8, "cubic", 5), (0.1, 9, 1, "cubic", 5), (0.1, 0, 8, "cubic", 5)]
    near = [(0.1, 0, 4, rule) for rule in ("lin", "", "Linear", "sqrt ", "sqrt2")]
    yield from rejections("scaled_learning_rate", [*cubic, *near], "ValueError")


EXERCISE = Exercise(
    library="gradients",
    number=5,
    minutes=5,
    difficulty=1,
    turn="one of two rules, and a straight line that leads to it",
    title="the rate for a batch P times as large",
    cases=_cases,
    hints=(
        "A line is fixed by two points. At which step is the rate `base`, and at which is it the scaled rate? What "
        "fraction of the warm-up is over at `step`?",
        "scaled = base · P or base · √P. As long as step < warm_up_steps, the rate is "
        "base + (scaled − base) · step / warm_up_steps.",
    ),
    praise=lambda outcome: "the rates are right for both rules, with warm-up and without",
)

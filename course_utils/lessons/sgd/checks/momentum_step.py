"""The check of `momentum_step`: weights and velocities after several steps, compared with sums over all gradients."""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import same
from course_utils.lessons.sgd.checks.common import Shapes, arrays, working_copies

DEFAULT = 0.9
LAYERS = ((6, 4), (4,), (4, 2))


def after_steps(
    function: Callable,
    parameters: Sequence,
    gradients: Sequence[Sequence],
    velocities: Sequence,
    rates: Sequence[float],
    momentum: float | None,
    views: bool,
) -> dict:
    """Return what is in the arrays after one step for each rate, as seen by the network that holds them too."""
    weights, speeds = working_copies(parameters, views), working_copies(velocities, views)
    slopes = [[gradient.copy() for gradient in each] for each in gradients]
    rest = () if momentum is None else (momentum,)
    for each, rate in zip(slopes, rates, strict=True):
        function(list(weights), each, list(speeds), rate, *rest)
    return {"velocities": speeds, "parameters": weights, "gradients": slopes}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        shapes: Shapes,
        steps: int = 1,
        momentum: float | None = DEFAULT,
        dtype: str | Sequence[str] = "float64",
        at_rest: bool = False,
        views: bool = False,
        steepness: float = 1.0,
        level_at: Collection[int] = (),
        alike: bool = False,
        idle_at: Collection[int] = (),
        key: str = "",
    ) -> Case:
        rates = [0.0 if step in idle_at else float(rng.uniform(0.05, 0.5)) for step in range(steps)]
        weights, speeds = arrays(rng, shapes, dtype), arrays(rng, shapes, dtype)
        if alike:
            weights, speeds = ([each[0].copy() for _ in each] for each in (weights, speeds))
        if at_rest:
            speeds = [np.zeros_like(speed) for speed in speeds]
        gradients = [arrays(rng, shapes, dtype, 0.0 if step in level_at else steepness) for step in range(steps)]
        given = (weights, gradients, speeds, rates, momentum)
        return Case(label, [(*given, views)], [_after(*given)], with_comm=False, harness=after_steps, key=key)

    yield case("one step, the velocities not 0", [(3,), (2, 2)], key="one-step")
    yield case("one step from rest", [(3,)], at_rest=True, key="one-step")
    yield case("three steps with different rates", LAYERS, 3)
    yield case("three steps, momentum 0.5", LAYERS, 3, momentum=0.5)
    two = [(2, 3), (4,)]
    yield in_a_row(case("a network", two, 2, at_rest=True), case("a second network", two, 2, at_rest=True))
    yield in_a_row(case("a large network", [(5, 4), (3,)]), case("a small network", [(2, 3)]))
    yield case("two steps without momentum", [(4,)], 2, momentum=0.0, key="no-momentum")
    yield case("three steps in float32, momentum 0.8", LAYERS, 3, momentum=0.8, dtype="float32")
    yield case("two steps in float16", LAYERS, 2, dtype="float16")
    yield case("float32 first, then float64", [(3,), (2, 4)], 2, dtype=("float32", "float64"), key="mixed-dtypes")
    label = "three steps, the gradient 0 in the second and third"
    yield case(label, [(4,), (2, 3)], 3, level_at=(1, 2), key="gradient-0")
    yield case("two steps, the rate 0 in the first", [(4,), (2, 3)], 2, idle_at=(0,), key="rate-0")
    yield case("momentum not given", [(5,)], 2, momentum=None)
    yield case("gradients around 100", [(2, 3)] * 3, 2, steepness=100.0)
    yield case("three arrays of the same numbers", [(2, 3)] * 3, 2, alike=True, key="same-numbers")
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)], 2, momentum=0.7, key="empty-array")
    yield case("an array of shape (), a single number", [(), (2,)], 2, key="scalar")
    yield case("arrays that do not lie in one piece", [(4, 3), (5,), (2, 3, 4)], 2, views=True, key="views")
    yield case("no parameters at all", [], 2)


def _after(weights: list, gradients: list, speeds: list, rates: list, momentum: float | None) -> dict:
    """Calculate the result, with each velocity as a sum over the gradients so far."""
    beta = DEFAULT if momentum is None else momentum
    moved, moving = [w.astype("float64") for w in weights], [v.astype("float64") for v in speeds]
    for index, start in enumerate(speeds):
        for step, rate in enumerate(rates):
            past = [beta ** (step - s) * gradients[s][index].astype("float64") for s in range(step + 1)]
            moving[index] = beta ** (step + 1) * start.astype("float64") + sum(past)
            moved[index] = moved[index] - rate * moving[index]
    found = {"velocities": moving, "parameters": moved}
    after = {name: [np.asarray(new, w.dtype) for new, w in zip(found[name], weights, strict=True)] for name in found}
    return after | {"gradients": gradients}


def _velocity_of_one_step(case: Case, outcome: Outcome) -> bool:
    return case.key == "one-step" and "velocities" in outcome.finding.where


def _weights_of_one_step(case: Case, outcome: Outcome) -> bool:
    return case.key == "one-step" and "parameters" in outcome.finding.where


def _nearly_right(case: Case, outcome: Outcome) -> bool:
    return case.key in ("", "one-step") and same(outcome.results[0], case.expected[0], 1e-5)


EXERCISE = Exercise(
    library="gradient_descent",
    number=3,
    minutes=10,
    difficulty=2,
    turn="change each velocity in place, then move the weights with it",
    title="a step with momentum",
    cases=_cases,
    hints=(
        "A slope changes the velocity of a ball, and the velocity changes its position. Which of the two happens first "
        "here? And into which array do you have to write the new velocity, so that the next call finds it?",
        "For each parameter, gradient and velocity, write three lines: `velocity *= momentum`, "
        "`velocity += gradient`, and `parameter -= rate * velocity`.",
    ),
    symptoms={
        "the velocity is wrong after one step": _velocity_of_one_step,
        "the weights are wrong after one step": _weights_of_one_step,
        "it is nearly right": _nearly_right,
    },
    praise=lambda outcome: "weights and velocities are right after one step and after three, and stay in their arrays",
)

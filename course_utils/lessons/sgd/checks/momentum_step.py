"""The check of `momentum_step`: weights and velocities after several steps, as a sum over all gradients gives them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.lessons.sgd.checks import LESSON
from course_utils.lessons.sgd.checks.common import arrays, every_second_row, part

DEFAULT = 0.9
LAYERS = ((6, 4), (4,), (4, 2))
Update = Callable[[np.ndarray, np.ndarray, np.ndarray, float, float], tuple[np.ndarray, np.ndarray]]
"""(weights, gradient, velocity, rate, momentum) → weights and velocity after the step."""


def after_steps(
    function: Callable,
    parameters: Sequence,
    gradients: Sequence[Sequence],
    velocities: Sequence,
    rates: Sequence[float],
    momentum: float | None,
    views: bool,
) -> dict:
    """What the arrays hold after one step for each rate, seen by somebody else who holds them too."""
    weights, speeds = ([every_second_row(one) if views else one for one in each] for each in (parameters, velocities))
    rest = () if momentum is None else (momentum,)
    for each, rate in zip(gradients, rates, strict=True):
        function(list(weights), each, list(speeds), rate, *rest)
    return {"velocities": speeds, "parameters": weights, "gradients": gradients}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        shapes: Sequence[tuple[int, ...]],
        steps: int = 1,
        momentum: float | None = DEFAULT,
        dtype: str = "float64",
        at_rest: bool = False,
        views: bool = False,
    ) -> Case:
        rates = [float(rate) for rate in rng.uniform(0.05, 0.5, steps)]
        weights, speeds = arrays(rng, shapes, dtype), arrays(rng, shapes, dtype)
        if at_rest:
            speeds = [np.zeros_like(speed) for speed in speeds]
        gradients = [arrays(rng, shapes, dtype) for _ in range(steps)]
        given = (weights, gradients, speeds, rates, momentum, views)
        return Case(label, [given], [_after(*given[:5])], with_comm=False, harness=after_steps)

    yield case("one step, the velocity not 0", [(3,)])
    yield case("one step from rest", [(3,)], at_rest=True)
    yield case("three steps, another rate each", LAYERS, 3)
    yield case("three steps, momentum 0.5", LAYERS, 3, momentum=0.5)
    yield case("two steps without momentum", [(4,)], 2, momentum=0.0)
    yield case("three steps in float32", LAYERS, 3, dtype="float32")
    yield case("momentum not given", [(5,)], 2, momentum=None)
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)], 2, momentum=0.7)
    yield case("arrays that do not lie in one piece", [(4, 3), (5,)], 2, views=True)
    yield case("no parameters at all", [], 2)


def _after(weights: list, gradients: list, speeds: list, rates: list, momentum: float | None) -> dict:
    """The result, each velocity as a sum over the gradients so far."""
    beta = DEFAULT if momentum is None else momentum
    moved, moving = [w.astype("float64") for w in weights], [v.astype("float64") for v in speeds]
    for place, start in enumerate(speeds):
        for step, rate in enumerate(rates):
            past = [beta ** (step - s) * gradients[s][place] for s in range(step + 1)]
            moving[place] = np.asarray(beta ** (step + 1) * start + sum(past))
            moved[place] = moved[place] - rate * moving[place]
    as_given = [[w.astype(o.dtype) for w, o in zip(new, weights, strict=True)] for new in (moving, moved)]
    unchanged = [[g.copy() for g in each] for each in gradients]
    return {"velocities": as_given[0], "parameters": as_given[1], "gradients": unchanged}


def _by(update: Update, of: str = "both") -> Recogniser:
    """A recogniser of weights ("parameters"), velocities, or both that another update gives."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        weights, gradients, speeds, rates, momentum, _ = case.arguments[0]
        beta = DEFAULT if momentum is None else momentum
        moved, moving = list(weights), list(speeds)
        for each, rate in zip(gradients, rates, strict=True):
            pairs = [update(*its, rate, beta) for its in zip(moved, each, moving, strict=True)]
            moved, moving = [w for w, _ in pairs], [v for _, v in pairs]
        wanted = {"parameters": moved, "velocities": moving}
        names = ("parameters", "velocities") if of == "both" else (of,)
        return all(_near(part(outcome, name), wanted[name], weights) for name in names)

    return recognises


def _near(got: object, wanted: list, weights: list) -> bool:
    return same(got, [np.asarray(one, dtype=w.dtype) for one, w in zip(wanted, weights, strict=True)], 1e-4)


def _gradients_changed(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and not same(part(outcome, "gradients"), case.expected[0]["gradients"])


def _always_the_same(case: Case, outcome: Outcome) -> bool:
    """Momentum 0.9, whatever was asked for."""
    given = case.arguments[0]
    if given[4] in (None, DEFAULT):
        return False
    other = _after(*given[:4], DEFAULT)
    return same(part(outcome, "velocities"), other["velocities"], 1e-4)


def _plain(update: Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]) -> Update:
    """The update with velocity v ← update(v, g, rate, β), and weights that follow it times the rate."""

    def both(w: np.ndarray, g: np.ndarray, v: np.ndarray, rate: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
        new = update(v, g, rate, beta)
        return w - rate * new, new

    return both


def _rate_inside(w: np.ndarray, g: np.ndarray, v: np.ndarray, rate: float, beta: float) -> tuple:
    new = beta * v + rate * g
    return w - new, new


def _rate_inside_downhill(w: np.ndarray, g: np.ndarray, v: np.ndarray, rate: float, beta: float) -> tuple:
    new = beta * v - rate * g
    return w + new, new


def _right_velocity(v: np.ndarray, g: np.ndarray, rate: float, beta: float) -> np.ndarray:
    return beta * v + g


MOMENTUM_STEP = Exercise(
    name="momentum_step",
    library="course_utils.lessons.sgd.gradient_descent:momentum_step",
    lesson=LESSON,
    place=3,
    minutes=10,
    difficulty=2,
    turn="renew each velocity in place, then move the weights by it",
    title="a step that remembers the steps before",
    cases=_cases,
    picture=False,
    hints=(
        "A ball rolls: the slope changes its velocity, and the velocity changes its place. Which of the two comes "
        "first, and in which array must the velocity be, so that the next call finds it?",
        "For each parameter, gradient and velocity: `velocity *= momentum`, `velocity += gradient`, "
        "`parameter -= rate * velocity`.",
    ),
    mistakes=(
        Mistake("Whose numbers did you change on the way?", _gradients_changed),
        Mistake("Is momentum always 0.9?", _always_the_same),
        Mistake(
            "In which array does the next call look for the velocity?", _by(lambda w, g, v, r, b: (w, v), "velocities")
        ),
        Mistake(
            "Do the weights themselves change, or did you make new ones?",
            _by(lambda w, g, v, r, b: (w, v), "parameters"),
        ),
        Mistake("Is the rate a part of the velocity?", _by(_rate_inside)),
        Mistake("Is the rate a part of the velocity?", _by(_rate_inside_downhill)),
        Mistake("Is the new gradient scaled before it is added?", _by(_plain(lambda v, g, r, b: b * v + (1 - b) * g))),
        Mistake(
            "What is multiplied by momentum: the old velocity, or more?", _by(_plain(lambda v, g, r, b: b * (v + g)))
        ),
        Mistake("How much of the old velocity is left after a step?", _by(_plain(lambda v, g, r, b: v + g))),
        Mistake("How much of the old velocity is left after a step?", _by(_plain(lambda v, g, r, b: b * g))),
        Mistake("How long is a step?", _by(lambda w, g, v, r, b: (w - (b * v + g), b * v + g))),
        Mistake("Uphill or downhill?", _by(lambda w, g, v, r, b: (w + r * (b * v + g), b * v + g))),
        Mistake("Uphill or downhill?", _by(_plain(lambda v, g, r, b: b * v - g), "velocities")),
        Mistake(
            "Which velocity moves the weights: that from before the step, or the new one?",
            _by(lambda w, g, v, r, b: (w - r * v, b * v + g)),
        ),
        Mistake(
            "What moves the weights: the gradient, or the velocity?",
            _by(lambda w, g, v, r, b: (w - r * g, b * v + g)),
        ),
        Mistake(
            "How often does the gradient count in one step?",
            _by(lambda w, g, v, r, b: (w - r * (g + b * (b * v + g)), b * v + g)),
        ),
        Mistake(
            "Can one calculate with a whole list, or with each array in it?",
            lambda case, outcome: raised(outcome, "multiply sequence"),
        ),
        Mistake("Does it work for an array of any shape, even an empty one?", lambda case, outcome: raised(outcome)),
    ),
    praise=lambda outcome: "weights and velocities are right after one step and after three, and stay in their arrays",
)

"""The check of `sgd_step`: weights after one step, in place; in the end the learner's step learns to read digits."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.data import digits_arrays
from course_utils.lessons.sgd.checks import LESSON
from course_utils.lessons.sgd.checks.common import arrays, every_second_row, part
from course_utils.lessons.sgd.digits_network import train_digits

ENOUGH = 0.95  # of the test images
STARTS = (2, 10, 14, 16, 18, 19, 20, 22, 26, 28, 29)  # first weights that read well over 95 % after the right steps
LAYERS = ((64, 32), (32,), (32, 10), (10,))


def after_a_step(function: Callable, parameters: Sequence, gradients: Sequence, rate: float, views: bool) -> dict:
    """What the arrays hold after the learner's step, seen by somebody else who holds them too."""
    held = [every_second_row(one) if views else one for one in parameters]
    function(list(held), gradients, rate)
    return {"parameters": held, "gradients": gradients}


def digits_read(function: Callable, data: tuple, seed: int) -> float:
    """The share of the test images that a small network finds, trained with the learner's step."""

    def batches(n: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
        return np.array_split(rng.permutation(n), n // size)  # not `minibatches`: graders hide that exercise's answer

    return train_digits(data, function, batches, epochs=15, seed=seed).test_accuracy


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, shapes: Sequence[tuple[int, ...]], dtype: str = "float64", views: bool = False) -> Case:
        rate = float(rng.uniform(0.05, 0.5))
        weights, gradients = arrays(rng, shapes, dtype), arrays(rng, shapes, dtype)
        moved = [w - np.asarray(rate, dtype) * g for w, g in zip(weights, gradients, strict=True)]
        after = {"parameters": moved, "gradients": [g.copy() for g in gradients]}
        label = f"{label}, rate {rate:.2g}"
        return Case(label, [(weights, gradients, rate, views)], [after], with_comm=False, harness=after_a_step)

    yield case("one array of 3 weights", [(3,)])
    yield case("the four arrays of a network", LAYERS)
    yield case("float32", LAYERS, "float32")
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)])
    yield case("arrays that do not lie in one piece", [(4, 3), (5,)], views=True)
    yield case("no parameters at all", [])
    yield _digits(rng)


def _digits(rng: np.random.Generator) -> Case:
    given = (digits_arrays(), int(rng.choice(STARTS)))
    label = "15 epochs of handwritten digits"
    return Case(label, [given], with_comm=False, harness=digits_read, judge=_too_few)


def _too_few(outcome: Outcome) -> str | None:
    share = outcome.results[0]
    return None if share >= ENOUGH else f"{share:.1%} of the test images are read, expected {ENOUGH:.0%}"


def _steps(case: Case) -> list[tuple]:
    weights, gradients, rate, _ = case.arguments[0]
    return [(w, g, rate) for w, g in zip(weights, gradients, strict=True)]


def _moved_by(formula: Callable[[np.ndarray, np.ndarray, float], np.ndarray]) -> Recogniser:
    """A recogniser of weights that come from another formula of (weights, gradient, rate)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        wanted = [formula(*each).astype(each[0].dtype) for each in _steps(case)]
        return bool(wanted) and same(part(outcome, "parameters"), wanted, 1e-4)

    return recognises


def _gradients_changed(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and not same(part(outcome, "gradients"), case.expected[0]["gradients"])


def _some_unchanged(case: Case, outcome: Outcome) -> bool:
    kept = [same(got, w) for got, (w, *_) in zip(part(outcome, "parameters"), _steps(case), strict=True) if w.size]
    return any(kept) and not all(kept)


def _normalised(w: np.ndarray, g: np.ndarray, rate: float) -> np.ndarray:
    return w - rate * g / (np.linalg.norm(g) or 1)


SGD_STEP = Exercise(
    name="sgd_step",
    library="course_utils.lessons.sgd.gradient_descent:sgd_step",
    lesson=LESSON,
    place=2,
    minutes=5,
    difficulty=1,
    turn="move each array of weights against its gradient, in place",
    title="one step against the gradient, in place",
    cases=_cases,
    picture=False,
    hints=(
        "You walk through two lists side by side. The network holds the same arrays as your list: what is the "
        "difference between `w = w - 1` and `w -= 1` for an array that somebody else holds too?",
        "For each parameter and its gradient (`zip`): `parameter -= rate * gradient`.",
    ),
    mistakes=(
        Mistake("Whose numbers did you change on the way?", _gradients_changed),
        Mistake("Uphill or downhill?", _moved_by(lambda w, g, rate: w + rate * g)),
        Mistake("How long is a step?", _moved_by(lambda w, g, rate: w - g)),
        Mistake("Does a steeper slope make a longer step?", _moved_by(_normalised)),
        Mistake("Does a steeper slope make a longer step?", _moved_by(lambda w, g, rate: w - rate * np.sign(g))),
        Mistake("Where do the weights come in?", _moved_by(lambda w, g, rate: -rate * g)),
        Mistake("Are the gradients already a mean over the batch?", _moved_by(lambda w, g, r: w - r * g / len(g))),
        Mistake("Do the arrays themselves change, or did you make new ones?", _moved_by(lambda w, g, rate: w)),
        Mistake("Does every array take its step?", _some_unchanged),
        Mistake(
            "Can one calculate with a whole list, or with each array in it?",
            lambda case, outcome: raised(outcome, "multiply sequence"),
        ),
        Mistake("Does it work for an array of any shape, even an empty one?", lambda case, outcome: raised(outcome)),
    ),
    praise=lambda outcome: (
        f"every array moves in place; with your step a network reads {outcome.results[0]:.1%} of the test digits"
    ),
)

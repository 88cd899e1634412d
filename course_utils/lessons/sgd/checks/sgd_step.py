"""The check of `sgd_step`: weights after one step, in place; at the end the learner's step trains a network."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import same
from course_utils.data import digits_arrays
from course_utils.lessons.sgd.checks.common import Shapes, arrays, working_copies
from course_utils.lessons.sgd.digits_network import train_digits

ENOUGH = 0.95  # of the test images
STARTS = (2, 10, 14, 16, 18, 19, 20, 22, 26, 28, 29)  # seeds that lead well over 95% with the right steps
LAYERS = ((64, 32), (32,), (32, 10), (10,))


def after_a_step(function: Callable, parameters: Sequence, gradients: Sequence, rate: float, views: bool) -> dict:
    """Return what is in the arrays after the learner's step, as seen by the network that holds them too."""
    held, slopes = working_copies(parameters, views), [gradient.copy() for gradient in gradients]
    function(list(held), type(gradients)(slopes), rate)
    return {"parameters": held, "gradients": slopes}


def digits_read(function: Callable, data: tuple, seed: int) -> float:
    """Train a small network with the learner's step; return the share of test images that it classifies correctly."""

    def batches(n: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
        return np.array_split(rng.permutation(n), n // size)  # not `minibatches`: graders hide that exercise's answer

    return train_digits(data, function, batches, epochs=15, seed=seed).test_accuracy


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        shapes: Shapes,
        dtype: str | Sequence[str] = "float64",
        views: bool = False,
        steepness: float = 1.0,
        alike: bool = False,
        key: str = "",
    ) -> Case:
        rate = float(rng.uniform(0.05, 0.5))
        weights, gradients = arrays(rng, shapes, dtype), arrays(rng, shapes, dtype, steepness)
        if alike:
            weights = [weights[0].copy() for _ in weights]
        moved = [np.asarray(w - np.asarray(rate, w.dtype) * g) for w, g in zip(weights, gradients, strict=True)]
        given = (weights, gradients if dtype == "float64" else tuple(gradients), rate, views)
        label = f"{label}, rate {rate:.2g}"
        expected = {"parameters": moved, "gradients": gradients}
        return Case(label, [given], [expected], with_comm=False, harness=after_a_step, key=key)

    yield case("an array of 3 weights, and one of 2 × 2", [(3,), (2, 2)])
    yield case("the four arrays of a network", LAYERS)
    yield case("three arrays of one shape", [(2, 3)] * 3, key="one-shape")
    yield case("three arrays of the same numbers", [(2, 3)] * 3, alike=True, key="same-numbers")
    yield in_a_row(case("a network", [(2, 3), (4,)]), case("a second network", [(2, 3), (4,)]))
    yield in_a_row(case("a large network", [(5, 4), (3,)]), case("a small network", [(2, 3)]))
    yield case("float32", LAYERS, "float32")
    yield case("float16", LAYERS, "float16")
    yield case("float32 first, then float64", [(3,), (2, 4)], ("float32", "float64"), key="mixed-dtypes")
    yield case("gradients around 100", LAYERS, steepness=100.0)
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)], key="empty-array")
    yield case("an array of shape (), a single number", [(), (2,)], key="scalar")
    yield case("arrays that do not lie in one piece", [(4, 3), (5,), (2, 3, 4)], views=True, key="views")
    yield case("no parameters at all", [])
    yield _digits(rng)


def _digits(rng: np.random.Generator) -> Case:
    given = (digits_arrays(), int(rng.choice(STARTS)))
    label = "15 epochs of handwritten digits"
    return Case(label, [given], with_comm=False, harness=digits_read, judge=_too_few)


def _too_few(outcome: Outcome) -> Finding | None:
    share = outcome.results[0]
    words = "{got:.1%} of the test images are classified correctly, expected {expected:.0%}"
    return None if share >= ENOUGH else own("too-few-images", words, got=share, expected=ENOUGH)


def _gradients_moved(case: Case, outcome: Outcome) -> bool:
    """Whether the parameters are what they were, and the gradients are not."""
    found, weights = outcome.results[0], case.arguments[0][0]
    return same(found["parameters"], weights, 0.0) and not same(found["gradients"], case.arguments[0][1], 0.0)


def _some_left_out(case: Case, outcome: Outcome) -> bool:
    """Whether some arrays are right, and others are what they were, in a case that has nothing special."""
    found, right, weights = outcome.results[0]["parameters"], case.expected[0]["parameters"], case.arguments[0][0]
    is_right = [same(*pair) for pair in zip(found, right, strict=True)]
    is_old = [same(*pair, 0.0) for pair in zip(found, weights, strict=True)]
    return not case.key and any(is_right) and not all(is_right) and all(map(max, is_right, is_old))


def _nearly_right(case: Case, outcome: Outcome) -> bool:
    return not case.key and same(outcome.results[0], case.expected[0], 1e-5)


EXERCISE = Exercise(
    library="gradient_descent",
    number=2,
    minutes=5,
    difficulty=1,
    turn="move each array of weights against its gradient, in place",
    title="one step against the gradient, in place",
    cases=_cases,
    hints=(
        "You go through two lists side by side. The network holds the same arrays as your list. If you write "
        "`w = w - 1`, does the network see the change? And if you write `w -= 1`?",
        "Loop over `zip(parameters, gradients)`, and write `parameter -= rate * gradient` for each pair.",
    ),
    symptoms={
        "the gradients move": _gradients_moved,
        "some arrays stay as they were": _some_left_out,
        "it is nearly right": _nearly_right,
    },
    praise=lambda outcome: (
        f"every array changes in place; trained with your step, a network classifies {outcome.results[0]:.1%} "
        "of the test images correctly"
    ),
)

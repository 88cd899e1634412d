"""The check of `largest_stable_lr`: Hessians whose eigenvalues are known, because they were made from them."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.lessons.sgd.checks import LESSON


def hessian_of(rng: np.random.Generator, eigenvalues: Sequence[float]) -> np.ndarray:
    """A symmetric matrix with these eigenvalues, its directions drawn at random."""
    directions = np.linalg.qr(rng.standard_normal((len(eigenvalues), len(eigenvalues))))[0]
    full = directions @ np.diag(np.asarray(eigenvalues, dtype=float)) @ directions.T
    return (full + full.T) / 2


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, hessian: np.ndarray, largest: float, *momentum: float, tolerance: float = 1e-9) -> Case:
        beta = momentum[0] if momentum else 0.0
        expected = 2 * (1 + beta) / largest if largest else math.inf
        label = f"{label}, momentum {beta:g}" if momentum else label
        return Case(label, [(hessian, *momentum)], [expected], with_comm=False, tolerance=tolerance)

    def spread(n: int) -> np.ndarray:
        return np.sort(rng.uniform(0.05, 1.0, n)) * np.linspace(1, 5, n)

    first = float(rng.integers(5, 20))
    yield case("a diagonal Hessian, its largest entry first", np.diag([first, 1.0, 2.0]), first)
    yield case("a diagonal Hessian", np.diag([2.0, 1.0, first]), first)
    for n in (2, 5):
        values = spread(n)
        yield case(f"{n} weights, directions at random", hessian_of(rng, values), float(values[-1]))
    for n, beta in ((3, 0.9), (6, float(rng.uniform(0.2, 0.8)))):
        values = spread(n)
        yield case(f"{n} weights", hessian_of(rng, values), float(values[-1]), beta)
    yield case("a Hessian of whole numbers", np.array([[2, 1], [1, 2]]), 3.0)
    yield case("entries below zero off the diagonal", np.array([[2.0, -3.0], [-3.0, 6.0]]), 4 + math.sqrt(13))
    yield case("one weight", np.array([[0.25]]), 0.25, 0.5)
    values = 1e-6 * spread(4)
    yield case("a nearly flat loss", hessian_of(rng, values), float(values[-1]))
    yield case("a direction that is flat", hessian_of(rng, [0.0, 1.0, 3.0]), 3.0)
    values = spread(4)
    yield case("float32", hessian_of(rng, values).astype("float32"), float(values[-1]), tolerance=1e-4)
    yield case("a flat loss", np.zeros((3, 3)), 0.0)


def _given(case: Case) -> tuple[np.ndarray, float]:
    hessian, *momentum = case.arguments[0]
    return hessian, momentum[0] if momentum else 0.0


def _gave(case: Case, outcome: Outcome, wanted: float) -> bool:
    got = outcome.results[0]
    return got is not NO_RESULT and same(got, float(wanted), max(case.tolerance, 1e-6))


def _of_largest(formula: Callable[[float, float], float]) -> Recogniser:
    """A recogniser of a formula of the largest eigenvalue and momentum."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        hessian, beta = _given(case)
        return _gave(case, outcome, formula(float(np.linalg.eigvalsh(hessian)[-1]), beta))

    return recognises


def _in_place_of_largest(*instead: Callable[[np.ndarray], float]) -> Recogniser:
    """A recogniser of the right formula with another number in the place of the largest eigenvalue."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        hessian, beta = _given(case)
        return any(_gave(case, outcome, 2 * (1 + beta) / found(hessian)) for found in instead)

    return recognises


def _flat(case: Case, outcome: Outcome) -> bool:
    return not _given(case)[0].any()


def _with_momentum(case: Case, outcome: Outcome) -> bool:
    return _given(case)[1] > 0


def _several(case: Case, outcome: Outcome) -> bool:
    return raised(outcome) or hasattr(outcome.results[0], "__len__")


def _smallest(hessian: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(hessian)[0])


LARGEST_STABLE_LR = Exercise(
    name="largest_stable_lr",
    library="course_utils.lessons.sgd.gradient_descent:largest_stable_lr",
    lesson=LESSON,
    place=4,
    minutes=10,
    difficulty=2,
    turn="find the largest eigenvalue, and the rate that it allows",
    title="how long may a step be?",
    cases=_cases,
    picture=False,
    hints=(
        "Along one direction of curvature λ a step turns the distance d into (1 − η λ) d. Between which two numbers "
        "must 1 − η λ lie? Of all directions, which one sets the limit for η?",
        "`np.linalg.eigvalsh(hessian)` gives the eigenvalues of a symmetric matrix, the largest last. The bound is "
        "2 · (1 + momentum) / largest, and `math.inf` where the largest is 0.",
    ),
    mistakes=(
        Mistake("How long may a step be where nothing is curved?", _flat),
        Mistake(
            "Is the step that lands in the minimum the longest that comes back?", _of_largest(lambda v, b: (1 + b) / v)
        ),
        Mistake("In a steeper valley, may steps be longer or shorter?", _of_largest(lambda v, b: 2 * (1 + b) * v)),
        Mistake("In a steeper valley, may steps be longer or shorter?", _of_largest(lambda v, b: v)),
        Mistake(
            "Which direction is the first to fail: the flattest, or the steepest?", _in_place_of_largest(_smallest)
        ),
        Mistake(
            "Is the steepest direction one of the axes?",
            _in_place_of_largest(lambda h: np.diag(h).max(), lambda h: h.max()),
        ),
        Mistake("The largest eigenvalue, or all of them together?", _in_place_of_largest(np.trace, np.linalg.norm)),
        Mistake(
            "In which order does NumPy hand out the eigenvalues?",
            _in_place_of_largest(lambda h: np.linalg.eigvals(h)[0]),
        ),
        Mistake("What does momentum change?", _of_largest(lambda v, b: 2 / v)),
        Mistake("With momentum, may steps be longer or shorter?", _with_momentum),
        Mistake("Is it one number that you return?", _several),
    ),
    praise=lambda outcome: "the bound is right for curved, nearly flat and flat losses, with momentum and without",
)

"""The check of `largest_stable_lr`, with Hessians that are made from known eigenvalues."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import same


def hessian_of(rng: np.random.Generator, eigenvalues: Sequence[float]) -> np.ndarray:
    """A symmetric matrix with these eigenvalues, its directions drawn at random."""
    directions = np.linalg.qr(rng.standard_normal((len(eigenvalues), len(eigenvalues))))[0]
    full = directions @ np.diag(np.asarray(eigenvalues, dtype=float)) @ directions.T
    return (full + full.T) / 2


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str, hessian: np.ndarray, largest: float, *momentum: float, tolerance: float = 1e-9, key: str = ""
    ) -> Case:
        beta = momentum[0] if momentum else 0.0
        expected = 2 * (1 + beta) / largest if largest else math.inf
        label = f"{label}, momentum {beta:g}" if momentum else label
        return Case(label, [(hessian, *momentum)], [expected], with_comm=False, tolerance=tolerance, key=key)

    def spread(n: int) -> np.ndarray:
        return np.sort(rng.uniform(0.05, 1.0, n)) * np.linspace(1, 5, n)

    first = float(rng.uniform(5, 20))
    yield case("a diagonal Hessian, its largest entry first", np.diag([first, 1.3, 2.1]), first, key="diagonal")
    yield case("a diagonal Hessian", np.diag([1.3, 2.1, first]), first)
    for n in (2, 5):
        values = spread(n)
        yield case(f"{n} weights, directions at random", hessian_of(rng, values), float(values[-1]))
    for n, beta in ((3, 0.9), (6, float(rng.uniform(0.2, 0.8)))):
        values = spread(n)
        yield case(f"{n} weights", hessian_of(rng, values), float(values[-1]), beta, key="momentum")
    pair = [spread(3) for _ in range(2)]
    yield in_a_row(*(case("3 weights", hessian_of(rng, values), float(values[-1]), 0.5) for values in pair))
    own, shared = (int(number) for number in rng.integers(1, 9, 2))
    yield case("a Hessian of whole numbers", own * np.eye(4, dtype=int) + shared, own + 4.0 * shared)
    yield case("entries below zero off the diagonal", np.array([[2.0, -3.0], [-3.0, 6.0]]), 4 + math.sqrt(13))
    yield case("one weight", np.array([[0.25]]), 0.25, 0.5)
    yield case("the same curvature everywhere", first * np.eye(3), first)
    values = 1e-6 * spread(4)
    yield case("a nearly flat loss", hessian_of(rng, values), float(values[-1]))
    values = 1e-12 * spread(3)
    yield case("a loss that is flatter still", hessian_of(rng, values), float(values[-1]), key="nearly-flat")
    values = 1e-120 * spread(3)
    yield case("a loss that is flatter than that", hessian_of(rng, values), float(values[-1]), key="nearly-flat")
    yield case("one direction that is flat", np.diag([0.0, first, 1.3]), first, key="flat-direction")
    yield case("two directions that are nearly flat", hessian_of(rng, [0.0, 0.0, 1.0, first]), first, 0.3)
    values = spread(4)
    yield case("float32", hessian_of(rng, values).astype("float32"), float(values[-1]), 0.6, tolerance=1e-4)
    values = spread(30)
    yield case("30 weights and no momentum", hessian_of(rng, values), float(values[-1]), 0.0)
    yield case("a flat loss", np.zeros((3, 3)), 0.0, key="flat")
    yield case("a flat loss of one weight", np.zeros((1, 1)), 0.0, 0.9, key="flat")


def _nearly(case: Case, outcome: Outcome) -> bool:
    return same(outcome.results[0], case.expected[0], 0.05)


def _taken_for_flat(case: Case, outcome: Outcome) -> bool:
    return case.key == "nearly-flat" and same(outcome.results[0], math.inf)


EXERCISE = Exercise(
    library="gradient_descent",
    number=4,
    minutes=10,
    difficulty=2,
    turn="find the largest eigenvalue and the rate that it allows",
    title="the largest learning rate",
    cases=_cases,
    hints=(
        "In a direction with curvature λ, a step changes the distance d to (1 − η λ) d. Which two numbers must 1 − η λ "
        "lie between, so that the distance does not grow? Which of all the directions sets the limit for η?",
        "`np.linalg.eigvalsh(hessian)` returns the eigenvalues of a symmetric matrix, the largest last. The limit is "
        "2 · (1 + momentum) / largest, or `math.inf` if the largest is 0.",
    ),
    symptoms={"it is nearly right": _nearly, "a curved loss is taken for flat": _taken_for_flat},
    praise=lambda outcome: "the limit is right for curved, nearly flat and flat losses, with momentum and without",
)

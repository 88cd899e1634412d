"""The check of `fit_alpha_beta`: exact lines give their own alpha and beta; noisy ones what `numpy.polyfit` finds."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome

PARTS = "alpha", "beta"


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        label: str, sizes: np.ndarray, noise: float = 0.0, as_list: bool = False, slower: float = 1.0, key: str = ""
    ) -> Case:
        alpha, beta = slower * float(rng.uniform(2e-6, 8e-5)), slower * float(rng.uniform(2e-10, 8e-9))
        seconds = (alpha + beta * sizes) * np.exp(noise * rng.standard_normal(len(sizes)))
        if noise:
            beta, alpha = map(float, np.polyfit(sizes, seconds, 1, w=1 / seconds))
        given = (sizes.tolist(), seconds.tolist()) if as_list else (sizes, seconds)
        key = key or ("noisy" if noise else "")
        return Case(label, [given], [(alpha, beta)], with_comm=False, tolerance=1e-6, key=key, parts=PARTS)

    def below_zero(label: str, alpha: float, beta: float, sizes: np.ndarray) -> Case:
        given = (sizes, alpha + beta * sizes)
        more = {"with_comm": False, "tolerance": 1e-6, "key": "below-zero", "parts": PARTS}
        return Case(label, [given], [(alpha, beta)], **more)

    powers = 4 ** np.arange(12)
    yield case("points on a line", powers, key="on-a-line")
    long_ones = 10**6 + np.sort(rng.permutation(10**4)[:12])
    yield case("long messages of nearly one size", long_ones, key="nearly-one-size")
    yield case("noisy points", powers, noise=0.15)
    yield case("noisy points in any order, as lists", rng.permutation(powers), noise=0.1, as_list=True)
    yield case("two points", np.array([0, 1000 * int(rng.integers(1, 1000))]), as_list=True)
    yield case("noisy points, a message of no bytes among them", np.append(rng.integers(1, 10**6, 20), 0), noise=0.2)
    yield case("noisy points, each size three times", rng.permutation(np.repeat(powers, 3)), noise=0.2)
    yield case("noisy points, seconds to hours for a message", powers, noise=0.1, slower=1e6)
    yield case("noisy points, sizes that are means", powers + 0.25, noise=0.1)
    alpha, beta = float(rng.uniform(2e-6, 8e-5)), float(rng.uniform(2e-10, 8e-9))
    sizes = np.sort(rng.uniform(2, 9, 12)) * alpha / beta  # long messages have a lower rate than short ones
    yield below_zero("points on a line that begins below zero", -alpha, beta, sizes)
    yield below_zero("points on a line that falls", alpha, -beta, sizes / 10)
    yield in_a_row(case("noisy points", powers, noise=0.1), case("noisy points", powers, noise=0.1))
    yield in_a_row(case("noisy points", powers, noise=0.1), case("noisy points", powers[3:], noise=0.1))


def _one_is_wrong(case: Case, outcome: Outcome) -> bool:
    """Whether points on a line give another line."""
    return case.key == "on-a-line" and outcome.finding.where in ((0,), (1,))


EXERCISE = Exercise(
    library="ping_pong",
    number=5,
    minutes=15,
    difficulty=2,
    turn="find the line with the smallest relative errors",
    title="latency and time per byte from a ping-pong",
    cases=_cases,
    hints=(
        "Divide the equation alpha + beta · n = t by t. What are then the factors of alpha and of beta, and what is "
        "left on the right-hand side?",
        "Turn both arguments into arrays n and t. Then `A = np.column_stack([1 / t, n / t])` has a row for each "
        "equation, and `b = np.ones(len(t))` has the right-hand sides. The first thing that `np.linalg.lstsq(A, b)` "
        "returns is alpha and beta.",
    ),
    symptoms={"points on a line give another line": _one_is_wrong},
    praise=lambda outcome: "alpha and beta are right, for points exactly on a line and for noisy ones",
)

"""The check of `fit_alpha_beta`: exact lines give their own alpha and beta; noisy ones what `numpy.polyfit` finds."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.compare import difference
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.lessons.messages.checks import LESSON

TOLERANCE = 1e-6


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(label: str, sizes: np.ndarray, noise: float = 0.0, as_list: bool = False, slower: float = 1.0) -> Case:
        alpha, beta = slower * float(rng.uniform(2e-6, 8e-5)), slower * float(rng.uniform(2e-10, 8e-9))
        seconds = (alpha + beta * sizes) * np.exp(noise * rng.standard_normal(len(sizes)))
        expected = _weighted(sizes, seconds, 1 / seconds) if noise else (alpha, beta)
        given = (sizes.tolist(), seconds.tolist()) if as_list else (sizes, seconds)
        kept = [dict(enumerate(given))]
        return Case(label, [given], [expected], kept, with_comm=False, tolerance=TOLERANCE)

    powers = 4 ** np.arange(12)
    yield case("points on a line", powers)
    yield case("noisy points", powers, noise=0.15)
    yield case("points in any order, as lists", rng.permutation(powers), noise=0.1, as_list=True)
    yield case("two points", np.array([0, 1000 * int(rng.integers(1, 1000))]), as_list=True)
    yield case("a message of no bytes among them", np.append(rng.integers(1, 1_000_000, 20), 0), noise=0.2)
    yield case("seconds to hours for a message", powers, noise=0.1, slower=1e6)


def _weighted(sizes: np.ndarray, seconds: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    beta, alpha = np.polyfit(sizes, seconds, 1, w=weights)
    return float(alpha), float(beta)


def _numbers(outcome: Outcome) -> tuple[float, float]:
    alpha, beta = outcome.results[0]
    return float(alpha), float(beta)


def _pair(formula: Callable[[float, float], tuple[float, float]]) -> Callable[[Case, Outcome], bool]:
    """A recogniser of results that a formula makes of the right alpha and beta."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return difference(0, _numbers(outcome), formula(*case.expected[0]), TOLERANCE) is None

    return recognises


def _fitted(weights: Callable[[np.ndarray], np.ndarray | None]) -> Callable[[Case, Outcome], bool]:
    """A recogniser of the fit with other weights than 1 / seconds."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        sizes, seconds = (np.asarray(values, dtype=float) for values in case.arguments[0])
        return difference(0, _numbers(outcome), _weighted(sizes, seconds, weights(seconds)), 1e-4) is None

    return recognises


def _measurements_changed(case: Case, outcome: Outcome) -> bool:
    right = difference(0, outcome.results[0], case.expected[0], TOLERANCE) is None
    return right and any(difference(0, got, given, 0) for got, given in zip(outcome.arguments[0], case.arguments[0]))


def _not_two(case: Case, outcome: Outcome) -> bool:
    result = outcome.results[0]
    return outcome.run is not None and (not hasattr(result, "__len__") or len(result) != 2)


EVERY_ERROR = "Does one percent of a short message count as much as one percent of a long one?"
SQUARE = "Is it the error that you divide by the time, or its square?"

FIT_ALPHA_BETA = Exercise(
    name="fit_alpha_beta",
    library="course_utils.lessons.messages.ping_pong:fit_alpha_beta",
    lesson=LESSON,
    place=5,
    minutes=15,
    difficulty=2,
    turn="minimise the relative errors",
    title="latency and time per byte from a ping-pong",
    cases=_cases,
    hints=(
        "The shortest message takes microseconds, the longest milliseconds. If you minimise the errors in seconds, "
        "which of the points decides? What would you have to divide each equation alpha + beta · n = t by?",
        "Least squares on alpha · (1 / t) + beta · (n / t) = 1: `np.linalg.lstsq` with the columns 1 / t and n / t, "
        "and ones on the right.",
    ),
    mistakes=(
        Mistake("Does whoever measured these still have them after your fit?", _measurements_changed),
        Mistake("Do you return two numbers, alpha and beta?", _not_two),
        Mistake("Which of the two is seconds per message?", _pair(lambda alpha, beta: (beta, alpha))),
        Mistake("Is your beta in seconds per byte, or in bytes per second?", _pair(lambda a, b: (a, 1 / b))),
        Mistake("Bits or bytes?", _pair(lambda alpha, beta: (alpha, beta / 8))),
        Mistake("Are both in seconds?", _pair(lambda alpha, beta: (alpha * 1e6, beta * 1e6))),
        Mistake("What does a message of no bytes cost?", lambda case, outcome: _numbers(outcome)[0] == 0),
        Mistake(EVERY_ERROR, _fitted(lambda seconds: None)),
        Mistake(SQUARE, _fitted(lambda seconds: 1 / seconds**2)),
        Mistake(SQUARE, _fitted(lambda seconds: 1 / np.sqrt(seconds))),
        Mistake(
            "Is alpha + beta · n a straight line in n, or in its logarithm?",
            lambda case, outcome: 1e-3 < _numbers(outcome)[1] < 10,
        ),
        Mistake("Does every measurement have a say?", lambda case, outcome: np.isfinite(_numbers(outcome)).all()),
    ),
    praise=lambda outcome: "alpha and beta are right on exact lines and on noisy ones, short messages and long",
    picture=False,
)

"""The check of `allreduce_time`: every round of every algorithm, with α, β and γ that are made up for each check."""

import math
from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import after_another_call
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.words import ranks

TOLERANCE = 1e-9
ALGORITHMS = ("through one rank", "tree", "recursive doubling", "halving-doubling", "ring")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def number(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def case(algorithm: str, size: int, nbytes: float, adding: bool = False, more: str = "", key: str = "") -> Case:
        alpha, beta = number(2e-6, 1e-3), number(1e-10, 1e-7)
        gamma = number(1e-10, 1e-8) if adding else 0.0
        label = f"{algorithm}, {ranks(size)}, {nbytes:,} bytes{', with a gamma' if adding else ''}{more}"
        expected = seconds(algorithm, size, nbytes, alpha, beta, gamma)
        given = (algorithm, size, nbytes, alpha, beta, gamma)
        return Case(label, [given], [expected], with_comm=False, tolerance=TOLERANCE, key=key)

    def nbytes() -> int:
        return int(number(1e3, 1e8))

    for size in (8, int(rng.choice([5, 6, 7])), int(rng.integers(65, 1024))):
        for algorithm in ALGORITHMS:
            yield case(algorithm, size, nbytes())
    for size in (int(rng.choice([4, 8, 16])), int(rng.choice([3, 5, 6, 7, 9, 11])), int(rng.integers(17, 100))):
        for algorithm in ALGORITHMS:
            yield case(algorithm, size, nbytes(), adding=True)
    for algorithm in ALGORITHMS:
        yield case(algorithm, 1, 1000, adding=True, key="one-rank")
    yield case("ring", 5, number(1e3, 1e5))
    again = case("tree", 9, 1000, more=", called again", key="called-again")
    yield after_another_call(again, [("tree", 9, 1000, 1.0, 1.0, 0.0)])
    yield case("ring", int(rng.choice([4, 5])), 0, adding=True, key="no-bytes")
    yield case("halving-doubling", 2, 1e6, adding=True)


def message_sizes(algorithm: str, size: int, nbytes: float) -> list[float]:
    """Bytes of the messages that follow each other: the longest chain from the first round to the last."""
    levels = int(math.log2(size) + 1e-9)
    folding = [nbytes] * (2 if 2**levels < size else 0)
    steps = 2 * (size - 1)
    if algorithm == "through one rank":
        return [nbytes] * steps
    if algorithm == "tree":
        return [nbytes] * 2 * math.ceil(math.log2(size) - 1e-9)
    if algorithm == "recursive doubling":
        return folding + [nbytes] * levels
    if algorithm == "halving-doubling":
        return folding + [nbytes / 2 ** (level + 1) for level in range(levels)] * 2
    return [nbytes / size] * steps


def added(algorithm: str, size: int, nbytes: float) -> float:
    """Bytes that are added one after the other."""
    levels = int(math.log2(size) + 1e-9)
    surplus = 2**levels < size
    vectors = {
        "through one rank": size - 1,
        "tree": math.ceil(math.log2(size) - 1e-9),
        "recursive doubling": levels + surplus,
        "halving-doubling": 1 - 1 / 2**levels + surplus,
        "ring": 1 - 1 / size,
    }
    return nbytes * vectors[algorithm]


def seconds(algorithm: str, size: int, nbytes: float, alpha: float, beta: float, gamma: float) -> float:
    """What must come out."""
    return messages_seconds(algorithm, size, nbytes, alpha, beta) + gamma * added(algorithm, size, nbytes)


def messages_seconds(algorithm: str, size: int, nbytes: float, alpha: float, beta: float) -> float:
    """The messages' part of it."""
    return math.fsum(alpha + beta * message for message in message_sizes(algorithm, size, nbytes))


def _beyond_the_messages(outcome: Outcome) -> float:
    """Of the time that came out, the share that is not the messages'; not a number if nothing was to be added."""
    *given, gamma = outcome.case.arguments[0]
    return float(outcome.results[0]) / messages_seconds(*given) - 1 if gamma else math.nan


EXERCISE = Exercise(
    library="time_formulas",
    number=6,
    minutes=25,
    difficulty=2,
    turn="add up the rounds of each algorithm",
    title="how long will it take? A formula for each algorithm",
    cases=_cases,
    hints=(
        "Take 8 ranks and write down, round by round, how many bytes a rank sends and how many it adds. In which "
        "algorithms are all rounds alike? What does halving-doubling send first, and what next? And what changes with "
        "6 ranks?",
        "Through one rank: (P − 1) · (2 (α + βn) + γn). Tree: the same with ⌈log₂ P⌉ in place of P − 1, which is "
        "`(P - 1).bit_length()`. Ring: (P − 1) · (2 (α + βn/P) + γn/P). For the other two let A be the largest power "
        "of two up to P. Recursive doubling takes log₂ A · (α + βn + γn), and halving-doubling takes 2 log₂ A · α + "
        "(A − 1)/A · (2βn + γn). If P > A, add 2 (α + βn) + γn.",
    ),
    symptoms={
        "nothing is added": lambda case, outcome: abs(_beyond_the_messages(outcome)) < 1e-7,
        "other numbers are added": lambda case, outcome: _beyond_the_messages(outcome) > 1e-7,
    },
    praise=lambda outcome: "right for five algorithms, from 1 rank to 1000",
    also_hidden=(
        "course_utils.lessons.allreduce.cost_model:allreduce_time",
        "course_utils.lessons.allreduce.shared_links:allreduce_time",
    ),
)

"""The check of `longest_text`: a text that fits, and 2 P tokens more that do not."""

from collections.abc import Iterator
from math import isqrt

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.words import bytes_text, ranks

Costs = tuple[float, float, float]
"""Bytes: fixed, of a token, of a pair."""


def needed(tokens: int, costs: Costs, size: int) -> float:
    """Bytes on each rank: each has its part of the tokens, and each of these meets all."""
    fixed, per_token, per_pair = costs
    own = tokens / size
    return fixed + own * per_token + own * tokens * per_pair


def longest(memory: float, costs: Costs, size: int) -> int:
    """In whole numbers: a binary search over pieces of 2 P tokens."""
    low, high = 0, 2 + isqrt(int(memory) * size) + int(memory) * size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(2 * size * middle, costs, size) <= memory else (low, middle)
    return 2 * size * low


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(tokens: int, costs: Costs, size: int, share: float = 0.5, key: str = "") -> Case:
        """Memory for so many tokens and a share of the next piece."""
        low, high = (needed(length, costs, size) for length in (tokens, tokens + 2 * size))
        memory = low + share * (high - low)
        fixed, per_token, per_pair = costs
        label = f"{bytes_text(memory)} on each of {ranks(size)}, {bytes_text(fixed)} fixed, {per_token:,} a token"
        label += f", {per_pair:,} a pair" if per_pair else ""
        label += ", exactly enough" if share < 1e-6 else ""
        given = (memory, fixed, per_token, *((per_pair,) if per_pair or size > 1 else ()), *((size,) * (size > 1)))
        return Case(label, [given], [longest(memory, costs, size)], with_comm=False, key=key)

    yield case(100, (1000, 10, 0), 1)
    yield case(400, (1000, 700, 3), 1)
    yield case(96, (1000, 10, 0), 4)
    yield case(400, (1000, 700, 3), 4)
    for size in (1, 3, 8):
        for per_pair in (0, int(rng.integers(2, 99))):
            costs = int(rng.integers(10**6, 10**8)), int(rng.integers(1000, 9999)), per_pair
            yield case(2 * size * int(rng.integers(200, 4000)), costs, size, float(rng.uniform(0.2, 0.8)))
    yield case(100, (1000, 15, 8), 1, 0.9)
    yield case(96, (1000, 10, 0.5), 4)
    yield case(96, (1000, 10.75, 0), 2)
    yield case(64, (512, 8, 0), 2, 0.0)
    yield case(96, (1000, 10, 2), 4, 0.0)
    yield case(480, (1000, 900_000, 0.001), 1, 1e-9, key="tiny-per-pair")
    yield case(96, (1000, 4000, 1e-6), 4, 1e-9, key="tiny-per-pair")
    yield case(0, (10**6, 4000, 30), 4, key="no-token")
    yield case(0, (10**6, 4000, 0), 1, 0.0, key="no-token")
    yield case(6 * int(rng.integers(10**8, 10**9)), (10**9, 4000, 0), 3)
    yield case(16 * 10**8, (16 * 10**9, 9 * 10**5, 0), 8)
    yield in_a_row(case(96, (1000, 10, 0), 4), case(400, (1000, 700, 3), 4))
    yield from rejections("longest_text", [(100, 200, 5), (100, 101, 5, 1, 4), (100, 10, 5, 0, 0), (100, 10, 5, 0, -2)])


def _is_too_long(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] > case.expected[0]


def _is_too_short(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] < case.expected[0]


def _is_no_multiple(case: Case, outcome: Outcome) -> bool:
    size = case.arguments[0][4] if len(case.arguments[0]) > 4 else 1
    return outcome.results[0] % (2 * size) != 0


EXERCISE = Exercise(
    library="longest_text",
    number=5,
    minutes=15,
    difficulty=2,
    turn="what is left for the text, solved for n",
    title="how long a text fits?",
    cases=_cases,
    symptoms={
        "the text is too long": _is_too_long,
        "the text is too short": _is_too_short,
        "it is no multiple of 2 P": _is_no_multiple,
    },
    hints=(
        "Write down what *one* rank keeps with n tokens. How many of them are its own, how many pairs do these make "
        "with the whole text, and which part doesn't depend on the number of ranks?",
        "Solve (per_token · n + per_pair · n²) / P = memory - fixed for n. With room = (memory - fixed) · P, the root "
        "n = 2 room / (per_token + √(per_token² + 4 per_pair room)) also holds for per_pair = 0. Round down to a "
        "multiple of 2 P.",
    ),
    praise=lambda outcome: "the longest text that fits, with and without pairs, and impossible cases are rejected",
)

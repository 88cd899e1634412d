"""The check of `place_prefill`: every prompt where it causes less waiting, with the queues in both places."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count


def placed(prompts: Sequence[int], running: int, token_seconds: float, cache_bytes: int, alpha: float, beta: float):
    """In fractions, so that equal is equal: the prompts that are read in each place before this one make it wait."""
    token, line = Fraction(token_seconds), (Fraction(alpha), Fraction(beta) * cache_bytes)
    read: dict[bool, Fraction] = {False: Fraction(0), True: Fraction(0)}
    found = []
    for tokens in prompts:
        waiting = {False: read[False] + running * tokens * token, True: read[True] + line[0] + line[1] * tokens}
        apart = waiting[True] < waiting[False]
        read[apart] += tokens * token
        found.append(apart)
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        prompts: Sequence[int],
        running: int,
        token_seconds: float = 2.0**-10,
        cache_bytes: int = 1024,
        alpha: float = 2.0**-8,
        beta: float = 2.0**-20,
        key: str = "",
    ) -> Case:
        """Powers of 2, so that floating-point numbers are exact."""
        given = ([int(tokens) for tokens in prompts], running, token_seconds, cache_bytes, alpha, beta)
        label = f"{count(len(prompts), 'prompt')}" + (f" of {list(given[0])} tokens" if len(prompts) <= 6 else "")
        label += f", {count(running, 'running answer')}"
        return Case(label, [given], [placed(*given)], with_comm=False, key=key)

    yield case([100], 1, beta=2.0**-19)
    yield case([10], 2, alpha=2.0**-4)
    yield case([200, 10, 300, 50, 10, 70], 1)
    yield case([100, 100], 2)
    yield case([100, 100, 100, 100], 4)
    yield case([30, 41, 53], 2)
    yield case([4], 2, key="equal")
    yield case([4, 4, 4], 2, key="equal")
    yield case([1, 60, 1], 3)
    yield case([64, 64, 64], 0, key="nobody-runs")
    yield case([200, 10, 300, 50, 10], 3)
    yield case([100], 3, beta=0.0, alpha=0.0)
    yield case([100, 50], 3, beta=2.0**-10)
    yield case([10, 5000], 1, beta=2.0**-22, alpha=2.0**-4)
    yield case([], 5, key="no-prompt")
    for running in (1, 2, 5):
        yield case(rng.integers(1, 900, 12), running)
    yield case(rng.integers(1, 900, 30), 3, beta=2.0**-21, cache_bytes=3000)
    yield in_a_row(case([100], 2), case([60], 2))
    yield case(rng.integers(1, 4000, 60), 8, alpha=2.0**-6)
    line = (0.001, 1000, 0.005, 1e-6)
    yield from rejections("place_prefill", [([0], 1, *line), ([5, -3], 1, *line), ([5], -1, *line)])


EXERCISE = Exercise(
    library="prefill_placement",
    number=5,
    minutes=15,
    difficulty=2,
    turn="who waits if it is read here, and who if it is read there?",
    title="where a prompt is read",
    cases=_cases,
    hints=(
        "Write down both sums for the first prompt. Which terms does the second prompt add to the one place, and to "
        "the other? And which time is the same in both places, so that you can leave it out?",
        "Keep two sums, `queue_here` and `queue_there`, at first 0. Compare `queue_there + alpha + beta * cache_bytes "
        "* tokens` with `queue_here + running * seconds`, where `seconds = token_seconds * tokens`. Add `seconds` to "
        "the queue of the smaller, and to `queue_here` if they are equal.",
    ),
    praise=lambda outcome: "each prompt is read where it causes less waiting, with the queues of both places",
)

"""The check of `continuous_batch`: against a simulation that goes through every step."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.words import count

Asked = Sequence[tuple[int, int]]


def step_by_step(requests: Asked, slots: int) -> list[tuple[int, int, int]]:
    """What happens if somebody looks at all slots at the beginning of every step."""
    busy_until, found, step = [0] * slots, [], 0
    for arrives, tokens in requests:
        step = max(step, arrives)
        while min(busy_until) > step:
            step += 1
        slot = [until <= step for until in busy_until].index(True)
        busy_until[slot] = step + tokens
        found.append((slot, step, step + tokens))
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(requests: Asked, slots: int, key: str = "") -> Case:
        label = f"{count(len(requests), 'request')} and {count(slots, 'slot')}"
        label += f": {list(map(tuple, requests))}" if len(requests) <= 6 else ""
        asked = [(int(arrives), int(tokens)) for arrives, tokens in requests]
        return Case(label, [(asked, slots)], [step_by_step(asked, slots)], with_comm=False, key=key)

    def random(number: int, gap: float, longest: int) -> list[tuple[int, int]]:
        arrives = np.cumsum(rng.geometric(gap, number)) - 1
        return [(int(step), int(tokens)) for step, tokens in zip(arrives, rng.integers(1, longest, number))]

    yield case([(0, 3)], 2)
    yield case([(0, 2), (0, 3)], 2)
    yield case([(0, 5), (0, 1), (0, 2), (0, 2)], 2)
    yield case([(0, 3), (1, 2)], 1)
    yield case([(4, 2), (4, 1)], 1, "late-first")
    yield case([(0, 2), (9, 2), (9, 1)], 2, "gap")
    yield case([(0, 4), (1, 1), (1, 3), (2, 1)], 2)
    yield case([(0, 6), (0, 2), (1, 2), (1, 1)], 2)
    yield case(random(12, 0.5, 10), 3)
    yield case(random(40, 0.8, 20), 4)
    yield case(random(40, 0.1, 20), 4)
    yield case([(0, 1)] * 9, 3)
    yield case([(step, 1) for step in range(6)], 1)
    yield case([], 3, "no-request")
    yield case(random(5, 0.5, 9), 8)
    yield case([(0, 10**12), (10, 5), (20, 10**11), (10**12, 3)], 2, "long-answers")
    yield in_a_row(case(random(6, 0.5, 9), 2), case(random(6, 0.5, 9), 2))
    yield case(random(300, 0.7, 30), 12)
    yield from rejections("continuous_batch", [([(0, 1)], 0), ([(0, 2), (1, 0)], 2), ([(3, 1), (2, 1)], 2)])


def _praise(outcome: Outcome) -> str:
    return "every request gets the first free slot, in the order of the queue, and leaves it when it is done"


EXERCISE = Exercise(
    library="batching",
    number=3,
    minutes=15,
    difficulty=2,
    turn="which slot is free first, and when may the next one begin?",
    title="who has which slot, and when",
    cases=_cases,
    limit=10.0,  # only steps counted one by one take so long
    hints=(
        "The queue is served in order. What do you have to know about each slot in order to find out when the next "
        "request can begin? And what if a slot is free long before the request arrives?",
        "Keep a list with the step from which on each slot is free, at first all 0. A request begins at "
        "`max(arrives, min(free))`, in the first slot with `free[slot] <= begins`. Then that slot is free from "
        "`begins + tokens` on. `check_requests` raises the error.",
    ),
    praise=_praise,
)

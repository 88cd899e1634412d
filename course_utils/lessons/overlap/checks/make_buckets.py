"""The check of `make_buckets`: the one grouping that the docstring describes, for any sizes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, one_after_another
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count

Sizes = Sequence[int]
Buckets = list[list[int]]


def by_hand(sizes: Sizes, limit: int, dtypes: Sequence | None = None) -> Buckets:
    """The longest run of gradients that fits, cut off again and again."""
    left, buckets = list(range(len(sizes)))[::-1], []

    def fits(places: list[int]) -> bool:
        alike = dtypes is None or len({dtypes[index] for index in places}) == 1
        return len(places) == 1 or alike and sum(sizes[index] for index in places) <= limit

    while left:
        length = max(n for n in range(1, len(left) + 1) if fits(left[:n]))
        buckets.append(left[:length])
        left = left[length:]
    return buckets


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(sizes: Sizes, limit: int, dtypes: Sequence[Any] | None = None, key: str = "") -> Case:
        given = (sizes, limit) if dtypes is None else (sizes, limit, dtypes)
        label = f"sizes {sizes}, limit {limit}" + (f", dtypes {list(map(str, dtypes))}" if dtypes else "")
        return Case(label, [given], [by_hand(*given)], with_comm=False, key="dtypes" if dtypes else key)

    yield case([8, 5, 4, 3, 2, 6], 10)
    yield case([4, 4, 4, 4, 4], 8, key="fits-exactly")
    yield case([4, 4, 4, 4, 4], 7)
    yield case([3, 50, 4, 2, 5], 10)
    yield case([], 10, key="no-sizes")
    yield case([7], 7)
    yield case([7], 3)
    yield case([4, 3, 4, 0, 4], 1)
    yield case([4, 0, 8], 8, key="full-bucket")
    yield case([0, 2, 0, 0, 3], 0)
    yield case([100, 1, 3_999_999_999, 2_000_000_000, 3_000_000_000], 4_000_000_000, key="gigabytes")
    yield case((6, 0, 3, 12, 0, 5, 1), 9)
    yield case([2, 2, 2, 2, 2, 2], 100, ["float32", "float32", "float64", "float64", "float32", "float32"])
    yield case([5, 5, 5], 10, ("float64", "float64", "float32"))
    yield case([2, 2, 2], 100, ["float16", "bfloat16", "bfloat16"])
    yield case([2, 2, 2, 2], 100, [np.dtype("float32"), np.dtype("float64"), np.dtype("float64"), np.dtype("float32")])
    calls = [([4, 4, 4], 8), ([4, 4, 4], 8, ["float32", "float64", "float32"]), ([4, 4, 4], 12), ([4, 4], 8)]
    names = tuple(f"in call {number}" for number in range(1, len(calls) + 1))
    more = {"with_comm": False, "harness": one_after_another, "key": AFTER_ANOTHER_CALL, "calls": names}
    yield Case("four calls, one after another", [(calls,)], [[by_hand(*given) for given in calls]], **more)
    for length in (5, 12, 30):
        yield case(_drawn(rng, length), int(rng.integers(30, 90)))
        kinds = [str(dtype) for dtype in rng.choice(["float32", "float16"], length, p=[0.8, 0.2])]
        yield case(_drawn(rng, length), int(rng.integers(30, 90)), kinds)


def _drawn(rng: np.random.Generator, length: int) -> list[int]:
    return [int(size) for size in rng.integers(1, 40, length)]


EXERCISE = Exercise(
    library="buckets",
    number=1,
    minutes=10,
    difficulty=1,
    turn="from the last to the first; begin a new bucket when a gradient does not fit",
    title="which gradients share a bucket?",
    cases=_cases,
    hints=(
        "You go through the gradients from the last to the first. What do you have to know at each of them to decide "
        "whether it still fits into the open bucket?",
        "`for index in reversed(range(len(sizes)))`: begin a new bucket if there is none yet, if `sizes[index]` is "
        "larger than the room left in the last one, or if its dtype is different. Then append `index` to the last "
        "bucket.",
    ),
    praise=lambda outcome: (
        f"every gradient once, the last first; the last case made {count(len(outcome.results[0]), 'bucket')} "
        f"of {count(len(outcome.case.arguments[0][0]), 'gradient')}"
    ),
)

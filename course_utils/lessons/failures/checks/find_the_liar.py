"""The check of `find_the_liar`: a flipped bit anywhere, by majority, with checksums and not with weights."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from course_utils.checks.cases import REJECTED, after_another_call, how_it_ended
from course_utils.checks.exercise import Case, Cost, Exercise
from course_utils.checks.promised_errors import Raises
from course_utils.words import join, ranks

MOST = 1000
"""Bytes that a rank may send."""


def flipped(weights: np.ndarray, index: int, bit: int) -> np.ndarray:
    """A copy in which one bit of one number is different; bits are counted from the lowest."""
    raw = bytearray(weights.tobytes())
    at, inside = divmod(bit, 8)
    raw[index * weights.itemsize + at] ^= 1 << inside
    return np.frombuffer(bytes(raw), weights.dtype).reshape(weights.shape).copy()


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int, bits: Mapping[int, int], shape: tuple[int, ...] = (800,), dtype: str = "float64", key: str = ""
    ) -> Case:
        weights = rng.standard_normal(shape).astype(dtype)
        index = int(rng.integers(weights.size))
        given = [flipped(weights, index, bits[rank]) if rank in bits else weights.copy() for rank in range(size)]
        changed = join([f"bit {bit} of rank {rank}" for rank, bit in bits.items()]) or "no bit"
        label = f"{ranks(size)}, {changed} flipped, {dtype}"
        result = {"expected": [sorted(bits)] * size, "cost": Cost(bytes_per_rank=MOST), "key": key}
        if 2 * max(Counter(bits.get(rank) for rank in range(size)).values()) <= size:
            result = {"expected": [Raises("CourseError")] * size, "harness": how_it_ended, "key": REJECTED}
        return Case(label, [(own,) for own in given], **result)

    def values(size: int, label: str, own: np.ndarray, other: np.ndarray, liar: int, key: str) -> Case:
        given = [(other.copy() if rank == liar else own.copy(),) for rank in range(size)]
        cost = Cost(bytes_per_rank=MOST)
        return Case(f"{ranks(size)}, {label}", given, [[liar]] * size, cost=cost, key=key)

    yield case(world_size, {})
    if world_size > 2:
        yield case(world_size, {world_size - 1: 61})
        yield case(world_size, {0: 51}, key="rank-0")
        yield case(3, {1: 0}, key="lowest-bit")
        yield case(world_size, {int(rng.integers(world_size)): 0}, (40, 30), key="lowest-bit")
        yield case(world_size, {1: 63}, key="sign")
        numbers = rng.standard_normal(900)
        swapped = numbers[[1, 0, *range(2, 900)]]
        yield values(world_size, "two numbers swapped on rank 2", numbers, swapped, 2, "swapped")
        zeros = np.zeros(600)
        yield values(3, "-0.0 on rank 1 and 0.0 on the others", zeros, -zeros, 1, "zeros")
        with_nan = np.append(numbers, np.nan)
        changed = with_nan.copy()
        changed[3] += 1
        yield values(3, "a NaN on all ranks, and rank 0 differs", with_nan, changed, 0, "nan")
    for size in range(1, world_size):
        yield case(size, {}, (700,), "float32")
    if world_size > 3:
        yield case(4, {2: 7}, (1500,), "float32")
        yield case(4, {0: 1, 3: 2}, (900,))
        yield case(4, {0: 5, 3: 5}, (900,), "float32")
    if world_size > 1:
        yield case(2, {1: 9})
    if world_size > 2:
        yield case(3, {0: 1, 1: 2})
    yield after_another_call(case(world_size, {}))
    if world_size > 2:
        yield case(world_size, {2: 29}, (100_000,), "float32", "long")


EXERCISE = Exercise(
    library="find_the_liar",
    number=5,
    minutes=15,
    difficulty=2,
    turn="a checksum of all bits, exchanged, and who is in the minority?",
    title="the rank with wrong weights",
    cases=_cases,
    hints=(
        "Which number of a few bytes changes whenever any bit of the weights does, and is the same in all processes? "
        "And whom do you believe if the ranks disagree?",
        "`hashlib.sha256(weights.tobytes()).digest()` is such a checksum, and `comm.allgather` exchanges them. "
        "`Counter(checksums).most_common(1)` gives the most frequent one and its votes. Unless 2 · votes > comm.size, "
        "raise the error.",
    ),
    praise=lambda outcome: "every flipped bit is found, by ranks that exchange a few bytes",
)

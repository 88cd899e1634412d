"""The check of `bus_bandwidth`: every operation, large and small groups, and impossible arguments."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import ranks

LINK_BYTES: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "all_gather": lambda p: (p - 1) / p,
    "reduce_scatter": lambda p: (p - 1) / p,
    "all_to_all": lambda p: (p - 1) / p,
    "broadcast": lambda p: 1.0,
    "reduce": lambda p: 1.0,
    "send": lambda p: 1.0,
}
"""Operation → the part of the vector that the busiest of P ranks has to send or receive at least."""


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(operation: str, size: int, nbytes: float, seconds: float, key: str = "") -> Case:
        label = f"{operation}, {ranks(size)}, {nbytes:,} bytes in {seconds:.4g} s"
        rate = LINK_BYTES[operation](size) * nbytes / seconds
        return Case(label, [(operation, size, nbytes, seconds)], [rate], with_comm=False, tolerance=1e-12, key=key)

    yield case("all_reduce", 4, 1000, 1.0)
    yield case("all_gather", 4, 1000, 1.0)
    yield case("reduce_scatter", 4, 1000, 0.5)
    yield case("broadcast", 4, 1000, 0.5)
    for operation in rng.permutation(list(LINK_BYTES)):
        size = int(rng.choice([3, 5, 6, 7, 40]))
        yield case(str(operation), size, int(rng.integers(10**6, 10**9)), float(rng.uniform(1e-4, 2)))
    yield case("all_reduce", 2, 1 << 20, float(rng.uniform(1e-4, 2)))
    yield case("all_gather", 3, float(rng.uniform(0.1, 0.9)), float(rng.uniform(1e-7, 1e-6)))
    yield case("all_to_all", 1024, 1.5e12, float(rng.uniform(100, 200)))
    for operation in LINK_BYTES:
        yield case(operation, 1, 1000, 0.25, "one-rank")
        yield case(operation, 8, 0, 0.001, "no-bytes")
    yield in_a_row(case("all_reduce", 4, 1000, 1.0), case("all_reduce", 8, 3000, 1.0))
    yield in_a_row(case("reduce", 4, 1000, 1.0), case("all_gather", 4, 1000, 1.0))
    no_sense = [
        ("gather", 4, 1000, 1.0),
        ("Broadcast", 4, 1000, 1.0),
        ("all-reduce", 4, 1000, 1.0),
        ("send", 4, 1000, 0.0),
    ]
    no_sense += [("all_scatter", 4, 1000, 1.0), ("reduce_all", 4, 1000, 1.0)]
    no_sense += [(operation, 0, 1000, 1.0) for operation in LINK_BYTES]
    no_sense += [("broadcast", -1, 1000, 1.0), ("all_gather", 4, 1000, -0.5), ("reduce", 4, -1, 1.0)]
    no_sense += [("gather", 1, 0, 1.0), ("all_to_all", 4, 0, 0.0), ("send", 1, 1000, 0.0)]
    yield from rejections("bus_bandwidth", no_sense)


EXERCISE = Exercise(
    library="course_utils.lessons.allreduce.bandwidth:bus_bandwidth",
    number=3,
    minutes=5,
    difficulty=1,
    turn="the part of the vector that a link carries, times the algorithm bandwidth",
    title="how full the links were",
    cases=_cases,
    hints=(
        "An all-reduce is a reduce-scatter followed by an all-gather. How many of the P blocks does a rank send in "
        "each of them? And how much of its vector must the root of a broadcast send at least?",
        "The part is `(P - 1) / P` for reduce-scatter, all-gather and all-to-all, twice that for an all-reduce, and 1 "
        "for broadcast, reduce and send. Multiply it by `algorithm_bandwidth(nbytes, seconds)`, which already rejects "
        "impossible times and bytes. Unknown operations and fewer than one rank are yours to reject, with a "
        "CourseError.",
    ),
    praise=lambda outcome: "seven operations, with one rank and with a thousand; impossible arguments are rejected",
)

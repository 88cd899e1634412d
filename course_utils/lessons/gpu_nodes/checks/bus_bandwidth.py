"""The check of `bus_bandwidth`: every operation, large and small groups, and what cannot be meant."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import must_refuse, refusals
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, same
from course_utils.lessons.gpu_nodes.checks import LESSON
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
"""Operation → what a rank's link has to carry at least, as a share of the vector; of P ranks."""


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(operation: str, size: int, nbytes: float, seconds: float) -> Case:
        label = f"{operation}, {ranks(size)}, {nbytes:,} bytes in {seconds:.4g} s"
        rate = LINK_BYTES[operation](size) * nbytes / seconds
        return Case(label, [(operation, size, nbytes, seconds)], [rate], with_comm=False, tolerance=1e-12)

    yield case("all_reduce", 4, 1000, 1.0)
    yield case("all_gather", 4, 1000, 1.0)
    yield case("reduce_scatter", 4, 1000, 0.5)
    yield case("broadcast", 4, 1000, 0.5)
    for operation in rng.permutation(list(LINK_BYTES)):
        size = int(rng.choice([3, 5, 6, 7, 40]))
        yield case(str(operation), size, int(rng.integers(10**6, 10**9)), float(rng.uniform(1e-4, 2)))
    yield case("all_reduce", 2, 1 << 20, float(rng.uniform(1e-4, 2)))
    for operation in LINK_BYTES:
        yield case(operation, 1, 1000, 0.25)
    yield case("all_reduce", 8, 0, 0.001)
    yield case("all_to_all", 1024, 1.5e9, float(rng.uniform(0.1, 2)))
    no_sense = [("gather", 4, 1000, 1.0), ("all_reduce", 0, 1000, 1.0), ("broadcast", -1, 1000, 1.0)]
    no_sense += [("send", 4, 1000, 0.0), ("all_gather", 4, 1000, -0.5), ("reduce", 4, -1000, 1.0)]
    yield from refusals("bus_bandwidth", no_sense)


def _is(wrong: Callable[[str, int], float], *operations: str) -> Recogniser:
    """A recogniser of another factor of (operation, P)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        operation, size, nbytes, seconds = case.arguments[0]
        asked = case.harness is None and (not operations or operation in operations)
        return asked and same(outcome.results[0], wrong(operation, size) * nbytes / seconds, 1e-12)

    return recognises


def _alone(case: Case, outcome: Outcome) -> bool:
    return case.harness is None and case.arguments[0][1] == 1


def _upside_down(case: Case, outcome: Outcome) -> bool:
    operation, size, nbytes, seconds = case.arguments[0]
    return same(outcome.results[0], LINK_BYTES[operation](size) * seconds / nbytes, 1e-12)


BUS_BANDWIDTH = Exercise(
    name="bus_bandwidth",
    library="course_utils.lessons.allreduce.bandwidth:bus_bandwidth",
    lesson=LESSON,
    place=3,
    minutes=5,
    difficulty=1,
    turn="the share of the vector that a link carries, times bytes per second",
    title="how full the links were",
    cases=_cases,
    picture=False,
    hints=(
        "An all-reduce is a reduce-scatter and an all-gather. How many of the P blocks does a rank send in each of "
        "them? And how much of its vector does the root of a broadcast have to send, in any event?",
        "`(P - 1) / P` of the vector for reduce-scatter, all-gather and all-to-all, twice that for an all-reduce, 1 "
        "for broadcast, reduce and send; times `algorithm_bandwidth(nbytes, seconds)`, which refuses times and bytes "
        "that cannot be. Operations and ranks you refuse yourself, with a CourseError.",
    ),
    mistakes=(
        Mistake("What does the docstring promise for what cannot be meant?", must_refuse),
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("How much has a rank without others to send?", _alone),
        Mistake("Bytes per second, or seconds per byte?", _upside_down),
        Mistake("Bytes, or gigabytes?", _is(lambda name, p: LINK_BYTES[name](p) / 1e9)),
        Mistake("What is the algorithm bandwidth still to be multiplied by?", _is(lambda name, p: 1.0, "all_reduce")),
        Mistake("Of which two operations is an all-reduce made?", _is(lambda name, p: (p - 1) / p, "all_reduce")),
        Mistake("How many of the P blocks stay where they are?", _is(lambda name, p: 2.0, "all_reduce")),
        Mistake("Does one rank's link carry that, or do all links together?", _is(lambda name, p: 2.0 * (p - 1))),
        Mistake(
            "Is it an all-reduce that is asked about?", _is(lambda name, p: 2 * (p - 1) / p, *list(LINK_BYTES)[1:])
        ),
        Mistake(
            "The bytes of a whole vector, or of one rank's block?",
            _is(lambda name, p: p - 1, "all_gather", "reduce_scatter", "all_to_all"),
        ),
        Mistake(
            "Which block does a rank have, or keep, without any message?",
            _is(lambda name, p: 1.0, "all_gather", "reduce_scatter", "all_to_all"),
        ),
        Mistake(
            "How much must leave the one rank that has all, or reach the one that gets all?",
            _is(lambda name, p: (p - 1) / p, "broadcast", "reduce", "send"),
        ),
    ),
    praise=lambda outcome: "seven operations, one rank and a thousand; what cannot be meant is refused",
)

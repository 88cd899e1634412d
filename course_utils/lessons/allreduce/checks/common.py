"""What the checks of lesson 5 share: the cases that every all-reduce must pass, and what each of them promises.

The module `symptoms` finds the signs of mistakes in an outcome.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.strict import CHANGED, TAKEN, on_a_strict_communicator, with_operation
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

    from course_utils.draw.block_frames import BlockFrames

LEAST = 4  # with fewer ranks the mistakes do not show: cases for this many are made, and left out where they do not fit
LONG = 40_000  # 320 KB of float64; a quarter of it is more than MPI keeps for a receiver that is not there yet
POWERS_OF_TEN, CALLED_AGAIN, LARGE_INTEGERS = "powers-of-ten", "called-again", "int64"
"""Keys of cases."""
NOT_COUNTED = "the result is right, but rank {rank} sent nothing by Send, Isend or Sendrecv"
A_PICKLE = "the result is right, but rank {rank} sent a pickle, by {call}"
NOT_EQUAL = "the sums of rank {rank} and rank 0 differ in the last digit at index {index}"
HASTE = {
    CHANGED: "rank {rank} changed numbers that {call} was still sending",
    TAKEN: "rank {rank} received two messages into the same memory at the same time, the second by {call}",
}

CostOf = Callable[[int, int], Cost]
"""(number of ranks, length) → the most that an all-reduce may cost; `bytes_per_rank` counts numbers, not bytes."""
Judge = Callable[[Outcome], Finding | None]
"""What is wrong beside the result and the cost; None where nothing is."""


def promises_kept(outcome: Outcome) -> Finding | None:
    """What no result shows: buffers touched too early, messages past the trace, unequal copies."""
    first = outcome.arguments[0][0]
    for rank, (vector, *_) in enumerate(outcome.arguments):
        for kind, call in haste(outcome, rank):
            return own(kind, HASTE[kind], rank=rank, call=call)
        silent = not outcome.run.bytes_per_rank[rank] and not outcome.attempt.replies[rank].never_waited_for
        if silent and outcome.world_size > 1 and len(vector) >= outcome.world_size:
            return own("nothing-sent", NOT_COUNTED, rank=rank)
        if vector.tobytes() != first.tobytes():
            return own("last-digit", NOT_EQUAL, rank=rank, index=int(np.argmax(vector != first)))
    pickles = (event for event in outcome.run.events if event.kind == "send" and event.name[0].islower())
    return next((own("pickled", A_PICKLE, rank=event.rank, call=event.name) for event in pickles), None)


def haste(outcome: Outcome, rank: int) -> list[tuple[str, str]]:
    """What this rank did to numbers that were on their way, and by which call, where the communicator was strict."""
    return watched(outcome, rank)[1]


def watched(outcome: Outcome, rank: int) -> tuple[Any, list[tuple[str, str]], int, int]:
    """What `on_a_strict_communicator` saw on this rank; nothing where none was there."""
    seen = outcome.results[rank]
    strict = outcome.case.harness is on_a_strict_communicator
    return seen if strict and type(seen) is tuple else (seen, [], 0, 0)


def allreduce_cases(
    rng: np.random.Generator, world_size: int, cost: CostOf, judge: Judge = promises_kept
) -> Iterator[Case]:
    """The cases of one algorithm; those with powers of ten tell whose numbers are in a sum and whose are not."""
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, dtype: str = "float64") -> Case:
        vectors = [numbers(rng, length, dtype) for _ in range(size)]
        return case_of(vectors, cost, f"{ranks(size)}, {count(length, f'{dtype} number')}", judge=judge)

    yield powers_of_ten(world_size, 2 * world_size, cost, judge=judge)
    yield case(world_size, LONG)
    yield case(world_size, int(rng.integers(9, 99)) * world_size + int(rng.integers(1, world_size)))
    yield dataclasses.replace(case(world_size, 501, "int64"), key=LARGE_INTEGERS)
    yield case(world_size, 1003, "float32")
    for size in fewer(world_size):
        yield case(size, 7 * size + int(rng.integers(size)), str(rng.choice(["float32", "float64", "int32"])))
    for length in (world_size - 1, 1, 0):
        yield case(world_size, length)
    again = case(world_size, 3 * world_size + 1)
    label = f"{again.label}, called again"
    yield dataclasses.replace(again, label=label, key=CALLED_AGAIN, cost=None, judge=None, harness=a_second_time)
    yield powers_of_ten(world_size - 1, 2 * world_size, cost, judge=judge)
    yield case(world_size, 48_000, "float32")


def wrong_sums(frames: "BlockFrames", arguments: tuple) -> frozenset[tuple[int, int]]:
    """The blocks that do not end up as the sum; none if the case asks for a different operation, "MAX"."""
    is_sum = not any(isinstance(argument, str) for argument in arguments[1:])
    return frames.incomplete() if is_sum else frozenset()


def powers_of_ten(size: int, length: int, cost: CostOf, also: str = "", *more: Any, **fields: Any) -> Case:
    """Powers of ten, whose sum tells which rank is in it and how often, on a communicator that sees haste."""
    powers = [np.full(length, 10.0**rank) for rank in range(size)]
    label = f"{ranks(size)}, {length} numbers, 10^r on rank r{also}"
    fields |= {"harness": on_a_strict_communicator, "key": POWERS_OF_TEN}
    return case_of(powers, cost, label, *more, **fields)


def case_of(vectors: list[np.ndarray], cost: CostOf, label: str, *more: Any, **fields: Any) -> Case:
    """One call on this many vectors, and the sum that must be in all of them afterwards.

    Args:
        more: the arguments after the vector.
        fields: of the case.
    """
    size, length, itemsize = len(vectors), len(vectors[0]), vectors[0].itemsize
    bound = cost(size, length)
    usual = {
        "cost": dataclasses.replace(bound, bytes_per_rank=bound.bytes_per_rank * itemsize, collectives=0),
        "judge": promises_kept,
        "harness": in_segments if more else None,
    }
    return Case(
        label,
        [(vector.copy(), *more) for vector in vectors],
        expected_arguments=[{0: sum_of(vectors)}] * size,
        **{**usual, **fields},
    )


def sum_of(vectors: list[np.ndarray]) -> np.ndarray:
    """The sum that all ranks must have, in the dtype of the vectors. It is rounded only once if that is a short one."""
    dtype = vectors[0].dtype
    together = np.stack(vectors).astype("float64" if dtype.kind == "f" else dtype)
    return np.sum(together, axis=0).astype(dtype)


def numbers(rng: np.random.Generator, length: int, dtype: str) -> np.ndarray:
    """Numbers that no shorter dtype can hold: real ones need rounding, int64 ones are beyond every float64."""
    if "int" in dtype:
        most = 2 ** (8 * np.dtype(dtype).itemsize - 6)
        return rng.integers(-most, most, length).astype(dtype)
    return rng.standard_normal(length).astype(dtype)


# --- around the learner's function, on the ranks ------------------------------------------------------------------


def in_segments(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray, segment_bytes: int) -> Any:
    """Call the learner's function with segments of this size."""
    return function(comm, vector, *with_operation(function, segment_bytes))


def a_second_time(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray) -> Any:
    """Call the learner's function after it was called with another dtype, another length, and other numbers."""
    function(comm, vector.astype("int32"))
    function(comm, vector[::-1].copy())
    function(comm, np.repeat(vector, 2))
    return function(comm, vector)

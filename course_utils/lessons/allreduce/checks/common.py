"""What the checks of lesson 5 share: the cases that every all-reduce must stand, and what is seen in an outcome.

The questions that go with them stand in `mistakes`.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Outcome
from course_utils.lessons.allreduce.checks.strict import on_a_strict_communicator
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

LEAST = 4  # with fewer ranks the mistakes do not show: cases for so many are made, and left out where they do not fit
LONG = 40_000  # 320 KB of float64; a quarter of it is more than MPI keeps for a receiver that is not there yet
NEVER_COMPLETED = "the result is right, but rank {rank} never waited for one of its requests"
NOT_COUNTED = "the result is right, but rank {rank} sent nothing by Send, Isend or Sendrecv"
UNEQUAL = "differ in the last digit"
NOT_EQUAL = f"rank {{rank}} and rank 0 {UNEQUAL} at index {{index}}"

CostOf = Callable[[int, int], Cost]
"""(number of ranks, length) → the most that an all-reduce may cost; `bytes_per_rank` counts numbers, not bytes."""


def allreduce_cases(rng: np.random.Generator, world_size: int, cost: CostOf) -> Iterator[Case]:
    """The cases of one algorithm; the first tells whose numbers are in a sum and whose are not."""
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, dtype: str = "float64", op: str | None = None) -> Case:
        vectors = [integers(rng, length, dtype, op) for _ in range(size)]
        return case_of(vectors, cost, f"{ranks(size)}, {count(length, f'{dtype} number')}", op)

    yield first_case(world_size, 2 * world_size, cost)
    yield case(world_size, LONG)
    yield case(world_size, int(rng.integers(9, 99)) * world_size + int(rng.integers(1, world_size)))
    yield _real_numbers(rng, world_size, cost)
    yield case(world_size, 501, "int64")
    yield case(world_size, 102, op="MAX")
    for size in fewer(world_size):
        yield case(size, 7 * size + int(rng.integers(size)), str(rng.choice(["complex128", "int32"])))
    yield case(world_size - 1, 17, "int64", op="PROD")
    for length in (world_size - 1, 1, 0):
        yield case(world_size, length)
    yield case(world_size, 48_000, "float32")


def first_case(size: int, length: int, cost: CostOf, also: str = "", *more: Any, **fields: Any) -> Case:
    """Powers of ten, whose sum tells which rank is in it and how often, on a communicator that sees haste."""
    powers = [np.full(length, 10.0**rank) for rank in range(size)]
    label = f"{ranks(size)}, {length} numbers, 10^r on rank r{also}"
    return case_of(powers, cost, label, None, *more, harness=on_a_strict_communicator, **fields)


def case_of(
    vectors: list[np.ndarray], cost: CostOf, label: str, op: str | None = None, *more: Any, **fields: Any
) -> Case:
    """One call on so many vectors, and the result that must stand in all of them afterwards.

    Args:
        more: the arguments behind the operation.
        fields: of the case.
    """
    size, length, dtype = len(vectors), len(vectors[0]), vectors[0].dtype
    numbers = cost(size, length)
    expected = expected_of(vectors, op)
    behind = (op, *more) if op or more else ()
    own = {
        "cost": dataclasses.replace(numbers, bytes_per_rank=numbers.bytes_per_rank * dtype.itemsize, collectives=0),
        "judge": promises_kept,
        "harness": with_operation if op else None,
    }
    return Case(
        f"{label}, {op}" if op else label,
        [(vector.copy(), *behind) for vector in vectors],
        expected_arguments=[{0: expected}] * size,
        **{**own, **fields},
    )


def expected_of(vectors: list[np.ndarray], op: str | None = None) -> np.ndarray:
    """The result that all ranks must hold, in the dtype of the vectors, and rounded once where that is float32."""
    dtype = vectors[0].dtype
    together = np.stack(vectors).astype("float64" if dtype == "float32" else dtype)
    return {None: np.sum, "MAX": np.max, "PROD": np.prod}[op](together, axis=0).astype(dtype)


def integers(rng: np.random.Generator, length: int, dtype: str, op: str | None = None) -> np.ndarray:
    """Numbers whose sums and products are exact in their dtype; int64 ones that no float64 can hold."""
    if op == "PROD":
        return rng.choice([-3, -2, -1, 1, 2, 3], length).astype(dtype)
    most = 2**58 if dtype == "int64" else 1000
    numbers = rng.integers(1, most, length) * rng.choice([-1, 1], length)
    return (numbers + (1j * rng.permutation(numbers) if dtype.startswith("complex") else 0)).astype(dtype)


def _real_numbers(rng: np.random.Generator, size: int, cost: CostOf) -> Case:
    """float32 numbers that need rounding: each of P - 1 additions, and the last digit of what is expected, may err.

    Each by half a last digit of the sum of the magnitudes.

    Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", §4.2.
    """
    vectors = [rng.standard_normal(1003).astype("float32") for _ in range(size)]
    magnitude = np.max(np.sum(np.abs(np.stack(vectors)), axis=0))
    allowed = size * np.finfo("float32").eps / 2 * magnitude / np.max(np.abs(expected_of(vectors)))
    return case_of(vectors, cost, f"{ranks(size)}, 1003 float32 numbers that need rounding", tolerance=float(allowed))


# --- around the learner's function, on the ranks ------------------------------------------------------------------


def with_operation(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray, op: str, *more: Any) -> Any:
    """Call the learner's function with an operation of MPI, which the notebook itself must not load."""
    from mpi4py import MPI

    return function(comm, vector, getattr(MPI, op), *more)


# --- what is seen in an outcome -----------------------------------------------------------------------------------


def promises_kept(outcome: Outcome) -> str | None:
    """What no result shows: requests left open, buffers touched too early, messages past the trace, unequal copies."""
    first = outcome.arguments[0][0]
    for rank, (vector, *_) in enumerate(outcome.arguments):
        for what in haste(outcome, rank):
            return f"rank {rank} {what}"
        if not outcome.attempt.replies[rank].clean:
            return NEVER_COMPLETED.format(rank=rank)
        if outcome.world_size > 1 and len(vector) >= outcome.world_size and not outcome.run.bytes_per_rank[rank]:
            return NOT_COUNTED.format(rank=rank)
        if vector.tobytes() != first.tobytes():
            return NOT_EQUAL.format(rank=rank, index=int(np.argmax(vector != first)))
    return None


def haste(outcome: Outcome, rank: int) -> list[str]:
    """What this rank did to numbers that were on their way, where a strict communicator has looked."""
    return _watched(outcome, rank)[1]


def from_anybody(case: Case, outcome: Outcome) -> bool:
    """Whether a receive did not say from whom, where a strict comm has looked."""
    return any(_watched(outcome, rank)[2] for rank in range(outcome.world_size))


def _watched(outcome: Outcome, rank: int) -> tuple[Any, list[str], int]:
    seen = outcome.results[rank]
    strict = outcome.case.harness is on_a_strict_communicator
    return seen if strict and type(seen) is tuple else (seen, [], 0)


def vectors_of(case: Case) -> np.ndarray:
    """The vectors of all ranks before the call, as rows."""
    return np.stack([arguments[0] for arguments in case.arguments])


def after(outcome: Outcome) -> np.ndarray:
    """The vectors of all ranks after the call, as rows."""
    return np.stack([arguments[0] for arguments in outcome.arguments])


def op_of(case: Case) -> str | None:
    """The operation that was asked for: None for the sum."""
    return next((argument for argument in case.arguments[0][1:] if isinstance(argument, str)), None)


def right_places(outcome: Outcome) -> np.ndarray:
    """For each rank and index, whether the number there is the right one."""
    expected = outcome.case.expected_arguments[0][0]
    return np.isclose(after(outcome), expected, rtol=1e-4)


def times_added(outcome: Outcome) -> np.ndarray | None:
    """For each rank, index and source, how often the source's number is in the sum: the digits of the first case.

    None where the numbers are not such sums, or the case is another one.
    """
    before, now = vectors_of(outcome.case), after(outcome)
    powers = 10.0 ** np.arange(outcome.world_size)
    if before.dtype != np.float64 or not before.size or not (before == powers[:, None]).all():
        return None
    if not (np.isfinite(now).all() and (now == np.floor(now)).all() and (now >= 0).all() and (now < 1e15).all()):
        return None
    digits = now.astype(np.int64)[:, :, None] // powers.astype(np.int64) % 10
    return digits if (digits @ powers == now).all() else None

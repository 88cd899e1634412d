"""What the checks of lesson 4 share: fresh vectors, and a message that is meant for somebody else."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import Case

if TYPE_CHECKING:
    from mpi4py import MPI

CALLED_AGAIN, ANOTHER_SENDER = AFTER_ANOTHER_CALL, "another-sender"
OTHER_ROOT, DEFAULT_ROOT = "other-root", "default-root"
"""Keys of cases."""
TAGS = range(128)  # whatever tag a receive names, a message of that tag is waiting
LEAST = 4  # with fewer ranks the mistakes do not show: cases for this many are made, and left out where they do not fit
HEADERS = 1000  # bytes that lengths, dtypes and pickles may add
DTYPES = ("int16", "float32", "float64", "complex64", "complex128", "int8", "int64", "bool")
"""What every MPI can send (MPI 4.1, section 3.2.2). MPICH knows float16 besides, and Open MPI does not."""


def other_roots(rng: np.random.Generator, world_size: int) -> list[int]:
    """Roots other than rank 0: all of them, or some where there are many."""
    roots = rng.permutation(np.arange(1, world_size))
    return sorted(int(root) for root in roots[:5])


def root_text(root: int) -> str:
    """The root as the labels name it."""
    return f"root {root}" if root == 0 else f"root {root} in place of 0"


def root_not_given(case: Case) -> Case:
    """The same case, with root 0, while the call names no root."""
    return dataclasses.replace(case, label=f"{case.label}, which is not named", key=DEFAULT_ROOT, harness=without_root)


def without_root(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray | None, root: int) -> Any:
    """Call the learner's function with its own default in the place of a root."""
    return function(comm, vector)


def random_vector(rng: np.random.Generator, length: int, dtype: str = "float64") -> np.ndarray:
    """Numbers that need all the digits of their dtype."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        return (rng.standard_normal(length) + 1j * rng.standard_normal(length)).astype(dtype)
    if kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, length, dtype=dtype, endpoint=True)
    return rng.integers(2, size=length).astype(bool) if kind == "b" else rng.standard_normal(length).astype(dtype)


def called_again(case: Case, before: Sequence[Any]) -> Case:
    """The same case after a call with other numbers of the same form; `before`: what that call gives on each rank."""
    both = list(zip(before, case.expected, strict=True))
    return dataclasses.replace(in_two_calls(case), expected=both, judge=None)


def in_two_calls(case: Case) -> Case:
    """The same case after a call whose result, if any, is returned with this one's."""
    label = f"{case.label}, called again"
    calls = ("in its first call", "in its second call")
    return dataclasses.replace(case, label=label, key=CALLED_AGAIN, cost=None, harness=both_calls, calls=calls)


def beside_another_sender(case: Case) -> Case:
    """The same case while a message of another sender is waiting; what it costs is not looked at."""
    label = f"{case.label}, while a message of another sender is waiting"
    return dataclasses.replace(case, label=label, key=ANOTHER_SENDER, cost=None, harness=with_an_early_message)


def both_calls(function: Callable, comm: "MPI.Intracomm", given: Any, *others: Any) -> tuple[Any, Any]:
    """Call the learner's function with other numbers, then with these; return both results as they are at the end."""
    earlier = function(comm, turned_round(given), *others)
    return earlier, function(comm, given, *others)


def turned_round(given: np.ndarray | float | None) -> np.ndarray | float | None:
    """Other numbers of the same form: a vector from its end, a number with the other sign."""
    if isinstance(given, np.ndarray):
        return given[::-1].copy()
    return None if given is None else -given


def with_an_early_message(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray | None, other: int) -> Any:
    """Call the learner's function while messages from a rank that has no part in it wait on every rank but `other`.

    So it is in a program that goes on to its next exchange: a receive from anybody takes what is not meant for it. A
    rank sends them to itself; `other`, the root or the partner, may have something to tell itself.
    """
    early = np.full(12, 777.0)  # a number that no random vector has
    untraced = comm.inner  # these messages are not the learner's
    tags = TAGS if comm.rank != other else ()
    sent = {tag: untraced.Issend(early, dest=comm.rank, tag=tag) for tag in tags}
    untraced.Barrier()  # nobody's own messages overtake them
    result = function(comm, vector, other)
    for tag, request in sent.items():
        while not request.Test():  # the function has not taken it
            if untraced.Iprobe(source=comm.rank, tag=tag):
                untraced.Recv(np.empty_like(early), source=comm.rank, tag=tag)
    return result

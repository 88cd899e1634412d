"""What the checks of lesson 4 share: fresh vectors, and words for what is seen in an outcome."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.recognisers import raised

if TYPE_CHECKING:
    from mpi4py import MPI

WAITING = ", while a message of another sender is waiting"
LEAST = 4  # with fewer ranks the mistakes do not show: cases for so many are made, and left out where they do not fit


def other_roots(rng: np.random.Generator, world_size: int) -> list[int]:
    """Roots other than rank 0: all of them, or some where there are many."""
    roots = rng.permutation(np.arange(1, world_size))
    return sorted(int(root) for root in roots[:5])


def random_vector(rng: np.random.Generator, length: int, dtype: str = "float64") -> np.ndarray:
    """A vector of numbers that are exact in every dtype and hardly ever equal to their neighbours."""
    numbers = rng.integers(-120, 120, length)
    if np.dtype(dtype).kind == "c":
        return (numbers + 1j * rng.integers(-120, 120, length)).astype(dtype)
    return (numbers % 2 == 0) if dtype == "bool" else numbers.astype(dtype)


def too_long(outcome: Outcome) -> bool:
    """Whether a message was longer than the place for it: our own words for Recv, MPI's for the other calls."""
    return any(raised(outcome, words) for words in ("room for", "truncate", "truncation"))


def with_an_early_message(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray, *arguments: Any) -> Any:
    """Call the learner's function while every rank has a message from somebody else, itself, waiting for it.

    So it is in a program that goes on to its next exchange: a receive from anybody takes what is not meant for it.
    """
    early = np.full_like(vector, 777)  # a number that no random vector has
    comm.Isend(early, dest=comm.rank)
    result = function(comm, vector, *arguments)
    if comm.Iprobe(source=comm.rank):
        comm.Recv(early, source=comm.rank)
    return result


def takes_the_early_message(case: Case, outcome: Outcome) -> bool:
    """Whether it went wrong where a message from somebody else was waiting, and only there."""
    return case.harness is with_an_early_message

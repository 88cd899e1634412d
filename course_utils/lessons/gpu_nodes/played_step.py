"""A training step that is played before its GPUs are paid for: computing only takes its time, gradients do travel."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.hierarchical import hierarchical_allreduce
from course_utils.lessons.messages.played_computation import compute_for

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def played_step(
    comm: "MPI.Intracomm", compute_seconds: float, numbers: int, allreduce: Callable[..., None], runs: int = 1
) -> list[float]:
    """Seconds of data-parallel steps on this rank: it computes as long as it is told, then gradients are added up.

    Nothing is hidden: the all-reduce begins when all have computed. Each rank's vector travels as often as `allreduce`
    sends it.

    Args:
        numbers: of float32 in the gradient of each rank.
        allreduce: of lesson 5, such as `on_nodes`.
        runs: steps, each begun together.

    Raises:
        ValueError: the gradients were not added up.
    """
    from mpi4py import MPI

    taken = []
    for _ in range(runs):
        gradient = np.ones(numbers, np.float32)
        comm.Barrier()
        began = MPI.Wtime()
        compute_for(comm, compute_seconds)
        allreduce(comm, gradient)
        taken.append(MPI.Wtime() - began)
        if (gradient != comm.size).any():
            raise ValueError("the gradients were not added up")
    return taken


def on_nodes(comm: "MPI.Intracomm", gradient: np.ndarray) -> None:
    """An all-reduce inside nodes of four, between them, and inside again; on one node a ring."""
    hierarchical_allreduce(comm, gradient, node_size=min(4, comm.size))

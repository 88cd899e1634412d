"""A computation that is played: it takes its time, and computes nothing."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def compute_for(comm: "MPI.Intracomm", seconds: float) -> None:
    """Let this many seconds pass: a real rank sleeps, a virtual one's clock goes on. Nothing moves between ranks."""
    getattr(comm, "compute", time.sleep)(seconds)

"""What a message costs: measured by sending it there and back, and fitted by a line, α + β · bytes (lesson 4)."""

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def ping_pong(comm: "MPI.Intracomm", nbytes: int, repeats: int = 100) -> float | None:
    """Send `nbytes` from rank 0 to rank 1 and back, `repeats` times; return half of the shortest round trip in seconds.

    One round trip more goes first and is not counted: it finds the buffers cold. The shortest is the one that nobody
    disturbed: the operating system gives the core to others now and then. The result is on rank 0, elsewhere None.

    Source: Hockney 1994, "The communication challenge for MPP: Intel Paragon and Meiko CS-2".
    """
    buffer = np.zeros(nbytes, dtype=np.uint8)
    round_trips = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        if comm.rank == 0:
            comm.Send(buffer, dest=1)
            comm.Recv(buffer, source=1)
        elif comm.rank == 1:
            comm.Recv(buffer, source=0)
            comm.Send(buffer, dest=0)
        round_trips.append(time.perf_counter() - start)
    return min(round_trips[1:]) / 2 if comm.rank == 0 else None


def fit_alpha_beta(
    nbytes: list[float] | np.ndarray,
    seconds: list[float] | np.ndarray,
) -> tuple[float, float]:
    """Fit seconds ≈ alpha + beta · nbytes and return (alpha, beta): seconds per message, seconds
    per byte.

    The line makes the sum of the squared *relative* errors, ((alpha + beta · n) / t − 1)², as small
    as possible. With absolute errors the longest message would decide alone, and alpha, which lives
    in the short ones, would be whatever is left over.

    Args:
        nbytes: sizes of the messages, at least two different ones.
        seconds: how long each of them took, positive. Both are left as they are.

    Source: Hockney 1994 (the model); weighted least squares: divide each equation alpha + beta · n
    = t by its t.
    """
    sizes, times = np.asarray(nbytes, dtype=float), np.asarray(seconds, dtype=float)
    # alpha + beta · n = t, each divided by its t: what is left over is then a relative error.
    equations = np.column_stack([1 / times, sizes / times])
    (alpha, beta), *_ = np.linalg.lstsq(equations, np.ones_like(times))
    return float(alpha), float(beta)


def message_time(nbytes: float, alpha: float, beta: float) -> float:
    """Return how many seconds a message of `nbytes` takes: alpha for any message, and beta for each byte of it.

    Args:
        alpha: latency, seconds per message.
        beta: seconds per byte, the inverse of the bandwidth.

    Source: Hockney 1994; the same as L + γmG where every symbol is renamed: alpha = L, beta = G, nbytes = γm.
    """
    return alpha + beta * nbytes

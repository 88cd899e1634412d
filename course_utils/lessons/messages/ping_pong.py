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
    """Return the (alpha, beta) of the line alpha + beta · n that suits the measured times best.

    The best line is the one with the smallest sum of squared *relative* errors, that is, of
    ((alpha + beta · n) / t − 1)² over all measurements.

    Args:
        nbytes: sizes n of the messages, at least two different ones.
        seconds: how long each of them took, t, always more than 0. Neither argument may be
            changed.

    Returns:
        alpha in seconds per message, and beta in seconds per byte. A number below 0 is returned as
        it is.

    Source: Hockney 1994, "The communication challenge for MPP: Intel Paragon and Meiko CS-2".
    """
    sizes, times = np.asarray(nbytes, dtype=float), np.asarray(seconds, dtype=float)
    # Each equation alpha + beta · n = t is divided by its t, so the errors are relative.
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

"""Messages between ranks: sending, exchanging, broadcasting and scattering them, and what one costs (lesson 4).

Upper-case methods of a communicator (`Send`, `Recv`, …) move the memory of a NumPy array as it is. Lower-case
ones (`send`, `recv`, …) pickle any Python object first. `P` in the text is the number of ranks, `world_size`.
"""

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def pass_the_token(comm: "MPI.Intracomm", number: float) -> float:
    """Send a running sum once round the ring 0 → 1 → … → P − 1 → 0, and return the token as it reached this rank.

    The token starts on rank 0 with that rank's number. Every other rank waits for it, adds its own number and
    passes it on to the next. So rank r receives the sum of the numbers of ranks 0 … r − 1, and rank 0, at the
    end, the sum of all. P messages in P rounds; one rank alone returns its own number and sends nothing.

    Args:
        number: what this rank adds.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 3.2 (blocking send and receive).
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    if world_size == 1:
        return number
    if rank == 0:
        comm.send(number, dest=right)
        return comm.recv(source=left)
    token = comm.recv(source=left)
    comm.send(token + number, dest=right)
    return token


def exchange_without_deadlock(comm: "MPI.Intracomm", vector: np.ndarray, partner: int) -> np.ndarray:
    """Swap vectors with `partner`, both ways at once, and return the partner's.

    The receive is posted first and does not wait, so there is a place for the partner's vector before either of
    the two sends: one round, whatever the size. A rank may be its own partner.

    Args:
        vector: this rank's vector, left as it is; the partner's has the same shape and dtype.
        partner: the rank to swap with; its own `partner` must be this rank.

    Source: MPI: A Message-Passing Interface Standard 4.1, sections 3.5 (deadlock, unsafe programs) and 3.7.
    """
    incoming = np.empty_like(vector)
    request = comm.Irecv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    request.Wait()
    return incoming


def flat_broadcast(comm: "MPI.Intracomm", vector: np.ndarray, root: int = 0) -> None:
    """Fill `vector` on every rank with the root's: the root sends it to each of the others in turn, P − 1 rounds.

    Args:
        vector: shape and dtype equal on all ranks; read on `root`, overwritten elsewhere.
        root: the rank that has the vector.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4 (the naive way).
    """
    if comm.rank == root:
        for step in range(1, comm.size):
            comm.Send(vector, dest=(root + step) % comm.size)
    else:
        comm.Recv(vector, source=root)


def tree_broadcast(comm: "MPI.Intracomm", vector: np.ndarray, root: int = 0) -> None:
    """Fill `vector` on every rank with the root's, in ⌈log₂ P⌉ rounds.

    In round k, each of the 2^k ranks that hold the vector sends it to the rank 2^k further on,
    counting from the root: P − 1 messages in all, each of the whole vector.

    Args:
        vector: shape and dtype equal on all ranks; read on `root`, overwritten elsewhere.
        root: the rank that has the vector.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4.1.
    """
    rank, world_size = comm.rank, comm.size
    distance = (rank - root) % world_size  # how far from the root, along the ring of ranks
    step = 1  # as many ranks as this hold the vector
    while step < world_size:
        if distance < step and distance + step < world_size:
            comm.Send(vector, dest=(rank + step) % world_size)
        elif step <= distance < 2 * step:
            comm.Recv(vector, source=(rank - step) % world_size)
        step *= 2


def scatter_blocks(comm: "MPI.Intracomm", vector: np.ndarray | None, root: int = 0) -> np.ndarray:
    """Cut the root's vector into P consecutive blocks, as equal as possible, and return this rank's.

    Where the length does not divide, the first `length % P` ranks get one element more. The root first tells
    everybody length and dtype (a few bytes, pickled), then every element travels once, as a buffer.

    Args:
        vector: one-dimensional, of any length and dtype, on `root`; not read elsewhere, so it may be None there.
        root: the rank that has the vector.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 6.6 (MPI_Scatterv).
    """
    rank, world_size = comm.rank, comm.size
    length, dtype = comm.bcast((len(vector), vector.dtype) if rank == root else None, root=root)
    counts = [length // world_size + (other < length % world_size) for other in range(world_size)]
    block = np.empty(counts[rank], dtype)
    comm.Scatterv([vector, counts] if rank == root else None, block, root=root)
    return block


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


def ping_pong_sentence(thousand: float, million: float) -> str:
    """What two ping-pongs say of a message's price: how many times as long as 1 byte a thousand and a million took."""
    longer = "hardly any longer" if thousand < 1.5 else f"{thousand:.1f} times as long"
    text = f"A thousand times the bytes: {longer}. A million times: {million:.0f} times as long."
    return text if thousand < 500 else f"{text} Here every byte has its price from the first on."


def fit_alpha_beta(nbytes: list[float] | np.ndarray, seconds: list[float] | np.ndarray) -> tuple[float, float]:
    """Fit seconds ≈ alpha + beta · nbytes and return (alpha, beta): seconds per message, seconds per byte.

    The line makes the sum of the squared *relative* errors, ((alpha + beta · n) / t − 1)², as small as possible.
    With absolute errors the longest message would decide alone, and alpha, which lives in the short ones, would be
    whatever is left over.

    Args:
        nbytes: sizes of the messages, at least two different ones.
        seconds: how long each of them took, positive.

    Source: Hockney 1994 (the model); weighted least squares: divide each equation alpha + beta · n = t by its t.
    """
    sizes, times = np.asarray(nbytes, dtype=float), np.asarray(seconds, dtype=float)
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

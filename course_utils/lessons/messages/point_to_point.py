"""Messages from one rank to another: sent round a ring, and exchanged without a deadlock (lesson 4).

Upper-case methods of a communicator (`Send`, `Recv`, …) move the memory of a NumPy array as it is. Lower-case
ones (`send`, `recv`, …) pickle any Python object first. `P` in the text is the number of ranks, `world_size`.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def pass_the_token(comm: "MPI.Intracomm", number: float) -> float:
    """Send a running sum once round the ring 0 → 1 → … → P − 1 → 0, and return the token as it
    reached this rank.

    The token starts on rank 0 with that rank's number. Every other rank waits for it, adds its own
    number and passes it on to the next. So rank r receives the sum of the numbers of ranks 0 … r −
    1, and rank 0, at the end, the sum of all. P messages in P rounds; one rank alone returns its
    own number and sends nothing.

    Args:
        number: what this rank adds.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 3.2 (blocking send and receive).
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    if world_size == 1:
        return number
    # Rank 0 sends before it receives. If it waited first like the others, all would wait for ever.
    if rank == 0:
        comm.send(number, dest=right)
        return comm.recv(source=left)
    token = comm.recv(source=left)
    comm.send(token + number, dest=right)
    return token


def exchange_without_deadlock(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    partner: int,
) -> np.ndarray:
    """Swap vectors with `partner`, both ways at once, and return the partner's.

    The receive starts first and does not wait, so there is a place for the partner's vector before
    either of the two sends: one round, whatever the size. A rank may be its own partner.

    Args:
        vector: this rank's vector, one-dimensional, left as it is; the partner's has the same
            length and dtype.
        partner: the rank to swap with; its own `partner` must be this rank.

    Source: MPI: A Message-Passing Interface Standard 4.1, sections 3.5 (deadlock, unsafe programs)
    and 3.7.
    """
    incoming = np.empty_like(vector)
    # First a place for what comes.
    # Then `Send` can finish on both ranks, however large the vectors are.
    request = comm.Irecv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    # Until now `incoming` may hold anything.
    request.Wait()
    return incoming

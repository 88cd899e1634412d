"""Messages from one rank to another: a token that travels around a ring, and an exchange without deadlock (lesson 4).

Upper-case methods of a communicator (`Send`, `Recv`, …) move the memory of a NumPy array as it is. Lower-case
ones (`send`, `recv`, …) pickle any Python object first. `P` in the text is the number of ranks, `world_size`.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def pass_the_token(comm: "MPI.Intracomm", number: float) -> float:
    """Send a running sum once around all ranks, 0 → 1 → … → P − 1 → 0, and return it as it arrived.

    The token starts on rank 0 with that rank's number. Every other rank waits for it, adds its
    own number and sends it on to the next rank. So rank r receives the sum of the numbers of
    ranks 0 to r − 1, and rank 0 receives the sum of all numbers at the end. This takes P
    messages. If there is only one rank, it returns its own number and sends nothing.

    Args:
        number: what this rank adds to the token.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 3.2 (blocking send and receive).
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    if world_size == 1:
        return number
    # Rank 0 sends before it receives. If it waited first, like the others, all would wait forever.
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
    """Send this rank's vector to `partner`, and return the vector that the partner has sent.

    Both vectors travel at the same time, in one round, and the function never hangs, however
    long they are. A rank may be its own partner, and then gets a copy of its own vector. They may
    be sent as buffers or pickled. Other messages may be waiting, so receive from `partner` only.

    Args:
        vector: this rank's vector, one-dimensional. It must not be changed. The partner's vector
            has the same length and dtype.
        partner: the rank to swap with. It is called with this rank as its partner.

    Source: MPI: A Message-Passing Interface Standard 4.1, sections 3.5 (deadlock, unsafe programs)
    and 3.7.
    """
    incoming = np.empty_like(vector)
    # First make room for what will arrive, without waiting for it.
    # Then `Send` can finish on both ranks, however long the vectors are.
    request = comm.Irecv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    # Before this line `incoming` may hold anything.
    request.Wait()
    return incoming

"""From one rank to all: a broadcast gives every rank the same numbers, a scatter gives each rank a block (lesson 4)."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


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
    """Copy the root's vector into `vector` on every other rank, in ⌈log₂ P⌉ rounds.

    In round k = 0, 1, 2, … each of the 2^k ranks that have the vector sends it to the rank that
    is 2^k further on, if there is one, counting from the root. This takes P − 1 messages, each of
    the whole vector. A different order with as few rounds and messages is just as good. Other
    messages may be waiting, so receive only from the rank that has to send.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks, and perhaps empty. It
            is read on the root and overwritten on all other ranks.
        root: the rank that has the vector.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4.1.
    """
    rank, world_size = comm.rank, comm.size
    distance = (rank - root) % world_size  # how far from the root, along the ring of ranks
    step = 1  # the number of ranks that have the vector
    while step < world_size:
        # The first `step` ranks have the vector.
        # They send it to the next `step`.
        if distance < step and distance + step < world_size:
            comm.Send(vector, dest=(rank + step) % world_size)
        elif step <= distance < 2 * step:
            comm.Recv(vector, source=(rank - step) % world_size)
        step *= 2


def scatter_blocks(comm: "MPI.Intracomm", vector: np.ndarray | None, root: int = 0) -> np.ndarray:
    """Cut the root's vector into P consecutive blocks, as equal as possible, and return this
    rank's block.

    If P does not divide the length, the first `length % P` ranks get one number more. The root
    first sends length and dtype to all ranks, pickled, which takes a few bytes. Then each number
    is sent once, as part of a buffer. The root's own block may be a part of its vector. Other
    messages may be waiting, so receive from `root` only.

    Args:
        vector: one-dimensional, of any length and of any dtype that MPI can send, on the root. The
            other ranks do not read it, and it may be None there.
        root: the rank that has the vector.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 6.6 (MPI_Scatterv).
    """
    rank, world_size = comm.rank, comm.size
    # Only the root knows how long the vector is, and all ranks have to make room for their block.
    length, dtype = comm.bcast((len(vector), vector.dtype) if rank == root else None, root=root)
    # The remainder of the division goes to the first ranks, one number each.
    counts = [length // world_size + (other < length % world_size) for other in range(world_size)]
    block = np.empty(counts[rank], dtype)
    comm.Scatterv([vector, counts] if rank == root else None, block, root=root)
    return block

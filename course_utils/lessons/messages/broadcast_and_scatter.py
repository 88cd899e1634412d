"""From one rank to all: a broadcast gives everybody the same numbers, a scatter gives each rank a block (lesson 4)."""

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
    """Fill `vector` on every rank with the root's, in ⌈log₂ P⌉ rounds.

    In round k = 0, 1, …, each of the 2^k ranks that hold the vector sends it to the rank 2^k
    further on, counting from the root: P − 1 messages in all, each of the whole vector.

    Args:
        vector: shape and dtype equal on all ranks; read on `root`, overwritten elsewhere.
        root: the rank that has the vector.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4.1.
    """
    rank, world_size = comm.rank, comm.size
    distance = (rank - root) % world_size  # how far from the root, along the ring of ranks
    step = 1  # as many ranks as this hold the vector
    while step < world_size:
        # Those that hold the vector send it `step` ranks on;
        # the ranks that it reaches now are the next `step`.
        if distance < step and distance + step < world_size:
            comm.Send(vector, dest=(rank + step) % world_size)
        elif step <= distance < 2 * step:
            comm.Recv(vector, source=(rank - step) % world_size)
        step *= 2


def scatter_blocks(comm: "MPI.Intracomm", vector: np.ndarray | None, root: int = 0) -> np.ndarray:
    """Cut the root's vector into P consecutive blocks, as equal as possible, and return this
    rank's.

    Where the length does not divide, the first `length % P` ranks get one element more. The root
    first tells everybody length and dtype (a few bytes, pickled), then every element travels once,
    as a buffer.

    Args:
        vector: one-dimensional, of any length and dtype, on `root`; not read elsewhere, so it may
            be None there.
        root: the rank that has the vector.

    Source: MPI: A Message-Passing Interface Standard 4.1, section 6.6 (MPI_Scatterv).
    """
    rank, world_size = comm.rank, comm.size
    # Only the root knows how long the vector is, and all must make room for their block.
    length, dtype = comm.bcast((len(vector), vector.dtype) if rank == root else None, root=root)
    # What the division leaves over goes to the first ranks, an element each.
    counts = [length // world_size + (other < length % world_size) for other in range(world_size)]
    block = np.empty(counts[rank], dtype)
    comm.Scatterv([vector, counts] if rank == root else None, block, root=root)
    return block

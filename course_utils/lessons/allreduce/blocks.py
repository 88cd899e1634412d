"""What the all-reduces share: cutting a vector into blocks, and folding surplus ranks in."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def block_bounds(length: int, world_size: int) -> list[int]:
    """Return P + 1 bounds: block b of a vector is `vector[bounds[b]:bounds[b + 1]]`.

    The blocks are as equal as possible: the first `length % P` have one number more, as in `scatter_blocks`.
    """
    size, longer = divmod(length, world_size)
    return [block * size + min(block, longer) for block in range(world_size + 1)]


def blocks_of(vector: np.ndarray, world_size: int) -> list[np.ndarray]:
    """Return the P blocks of `vector` as views: writing into a block writes into the vector."""
    if world_size == 1:
        return [vector]
    bounds = block_bounds(len(vector), world_size)
    return [vector[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]


def fold_in(comm: "MPI.Intracomm", vector: np.ndarray) -> int:
    """Fold the surplus ranks in, and return how many ranks go on: the largest power of two that is at most P.

    If that power is A, each rank r ≥ A sends its whole vector to rank r − A, which adds it to its own, and then waits
    for `fold_out`. This takes one round, or none if P is a power of two.
    """
    active = 1 << (comm.size.bit_length() - 1)
    if comm.rank >= active:
        comm.Send(vector, dest=comm.rank - active)
    elif comm.rank + active < comm.size:
        incoming = np.empty_like(vector)
        comm.Recv(incoming, source=comm.rank + active)
        vector += incoming
    return active


def fold_out(comm: "MPI.Intracomm", vector: np.ndarray, active: int) -> None:
    """Send the result to the ranks that were folded in, each from the rank that took its vector. One round, or none."""
    if comm.rank >= active:
        comm.Recv(vector, source=comm.rank - active)
    elif comm.rank + active < comm.size:
        comm.Send(vector, dest=comm.rank + active)

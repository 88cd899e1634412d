"""What the all-reduces share: cutting a vector into blocks, combining two vectors, folding surplus ranks in."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def block_bounds(length: int, world_size: int) -> list[int]:
    """Return P + 1 bounds: block b of a vector is `vector[bounds[b]:bounds[b + 1]]`.

    The blocks are as equal as possible: the first `length % P` have one element more, as in `scatter_blocks`.
    """
    size, longer = divmod(length, world_size)
    return [block * size + min(block, longer) for block in range(world_size + 1)]


def blocks_of(vector: np.ndarray, world_size: int) -> list[np.ndarray]:
    """Return the P blocks of `vector` as views: writing into a block writes into the vector."""
    if world_size == 1:
        return [vector]
    bounds = block_bounds(len(vector), world_size)
    return [vector[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]


def combine(incoming: np.ndarray, into: np.ndarray, op: "MPI.Op | None") -> None:
    """Combine `incoming` into `into`, element by element: NumPy's addition, or the local part of an MPI operation.

    Args:
        incoming: left as it is; length and dtype as `into`.
        op: None for the sum. An MPI operation also needs a dtype that MPI knows.
    """
    if op is None:
        np.add(into, incoming, out=into)
    elif len(into):
        op.Reduce_local(incoming, into)


def check_operands(vector: np.ndarray, op: "MPI.Op | None") -> None:
    """Reject what these algorithms cannot do, before anything is sent.

    Raises:
        ValueError: the vector is not a writeable, contiguous array of one dimension, or the operation not commutative.
    """
    if not isinstance(vector, np.ndarray) or vector.ndim != 1 or not vector.flags.c_contiguous:
        raise ValueError(
            "an all-reduce needs a contiguous NumPy array of one dimension; np.ascontiguousarray makes one"
        )
    if not vector.flags.writeable:
        raise ValueError("an all-reduce writes its result into the vector, and this one is read-only")
    if op is not None and not op.Is_commutative():
        raise ValueError("these algorithms combine in an order of their own, and this operation is not commutative")


def fold_in(comm: "MPI.Intracomm", vector: np.ndarray, op: "MPI.Op | None") -> int:
    """Fold the surplus ranks in and return how many go on: the largest power of two that is at most P.

    Each rank from that power on sends its whole vector to the rank this many below, which combines it into its own, and
    waits for `fold_out`. One round, or none where P is a power of two.
    """
    active = 1 << (comm.size.bit_length() - 1)
    if comm.rank >= active:
        comm.Send(vector, dest=comm.rank - active)
    elif comm.rank + active < comm.size:
        incoming = np.empty_like(vector)
        comm.Recv(incoming, source=comm.rank + active)
        combine(incoming, vector, op)
    return active


def fold_out(comm: "MPI.Intracomm", vector: np.ndarray, active: int) -> None:
    """Give the ranks that were folded in the whole result: the way of `fold_in`, back. One round, or none."""
    if comm.rank >= active:
        comm.Recv(vector, source=comm.rank - active)
    elif comm.rank + active < comm.size:
        comm.Send(vector, dest=comm.rank + active)

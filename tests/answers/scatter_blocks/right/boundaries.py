"""Counts and displacements from the boundaries, and two small broadcasts before."""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    size = comm.Get_size()
    length = comm.bcast(None if vector is None else vector.size, root=root)
    dtype = comm.bcast(None if vector is None else vector.dtype.str, root=root)
    boundaries = [-(-length * part // size) for part in range(size + 1)]
    lengths = sorted((b - a for a, b in zip(boundaries, boundaries[1:], strict=False)), reverse=True)
    starts = [sum(lengths[:part]) for part in range(size)]
    block = np.zeros(lengths[comm.Get_rank()], dtype=dtype)
    comm.Scatterv([vector, lengths, starts, None] if comm.Get_rank() == root else None, block, root=root)
    return block

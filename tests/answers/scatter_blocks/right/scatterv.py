"""Counts and Scatterv."""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    header = (len(vector), vector.dtype) if comm.rank == root else None
    length, dtype = comm.bcast(header, root=root)
    quotient, rest = divmod(length, comm.size)
    counts = [quotient + 1] * rest + [quotient] * (comm.size - rest)
    block = np.empty(counts[comm.rank], dtype)
    comm.Scatterv([vector, counts] if comm.rank == root else None, block, root=root)
    return block

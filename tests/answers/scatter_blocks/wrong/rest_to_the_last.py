"""Refused with: Are your blocks as equal as possible?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    counts = [length // comm.size] * comm.size
    counts[-1] += length % comm.size
    block = np.empty(counts[comm.rank], dtype)
    comm.Scatterv([vector, counts] if comm.rank == root else None, block, root=root)
    return block

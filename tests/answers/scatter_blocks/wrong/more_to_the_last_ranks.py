"""Refused with: Which ranks get one element more?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    quotient, rest = divmod(length, comm.size)
    counts = [quotient] * (comm.size - rest) + [quotient + 1] * rest
    block = np.empty(counts[comm.rank], dtype)
    comm.Scatterv([vector, counts] if comm.rank == root else None, block, root=root)
    return block

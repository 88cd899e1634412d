"""Refused with: Does every rank of the communicator call it, the root too?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    if comm.rank == root:
        length, dtype = comm.bcast((len(vector), vector.dtype), root=root)
    counts = [length // comm.size + (rank < length % comm.size) for rank in range(comm.size)]
    block = np.empty(counts[comm.rank], dtype)
    comm.Scatterv([vector, counts] if comm.rank == root else None, block, root=root)
    return block

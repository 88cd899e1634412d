"""Refused with: Has your block the dtype of the vector?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length = comm.bcast(len(vector) if comm.rank == root else None, root=root)
    counts = [length // comm.size + (rank < length % comm.size) for rank in range(comm.size)]
    block = np.empty(counts[comm.rank])
    comm.Scatterv([vector, counts] if comm.rank == root else None, block, root=root)
    return block

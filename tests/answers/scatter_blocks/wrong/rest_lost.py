"""Refused with: Where did the last elements go?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    share = length // comm.size
    block = np.empty(share, dtype)
    comm.Scatterv([vector, [share] * comm.size] if comm.rank == root else None, block, root=root)
    return block

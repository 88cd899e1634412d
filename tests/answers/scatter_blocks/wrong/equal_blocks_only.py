"""Refused with: What happens to a length that does not divide?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    block = np.empty(-(-length // comm.size), dtype)
    comm.Scatter(vector, block, root=root)
    return block

"""Refused with: Which rank has the vector?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    counts = [len(part) for part in np.array_split(np.arange(len(vector)), comm.size)]
    block = np.empty(counts[comm.rank], vector.dtype)
    comm.Scatterv([vector, counts], block, root=root)
    return block

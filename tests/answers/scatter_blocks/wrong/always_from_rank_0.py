"""Refused with: Does the vector come from `root`?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    blocks = np.array_split(vector, comm.size) if comm.rank == 0 else None
    return comm.scatter(blocks)

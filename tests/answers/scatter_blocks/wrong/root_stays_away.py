"""Refused with: Does every rank of the communicator call it, the root too?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    if comm.rank == root:
        return np.array_split(vector, comm.size)[root]
    return comm.scatter(None, root=root)

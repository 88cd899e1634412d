"""NumPy cuts, the pickled scatter hands out."""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    blocks = np.array_split(vector, comm.size) if comm.rank == root else None
    return comm.scatter(blocks, root=root)

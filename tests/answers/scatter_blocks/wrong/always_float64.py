"""Refused with: Has your block the dtype of the vector?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    blocks = np.array_split(vector, comm.size) if comm.rank == root else None
    block = comm.scatter(blocks, root=root)
    return np.array(block, dtype=complex if block.dtype.kind == "c" else float)

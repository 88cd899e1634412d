"""Refused with: Did the root keep more than its own block?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    blocks = np.array_split(vector, comm.size) if comm.rank == root else None
    block = comm.scatter(blocks, root=root)
    return vector if comm.rank == root else block

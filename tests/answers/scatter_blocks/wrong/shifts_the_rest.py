"""Refused with: Does the root still have its vector?"""

import numpy as np


def scatter_blocks(comm, vector, root=0):
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    counts = [length // comm.size + (other < length % comm.size) for other in range(comm.size)]
    block = np.empty(counts[comm.rank], dtype)
    if comm.rank != root:
        comm.Recv(block, source=root)
        return block
    for other, count in enumerate(counts):
        front = vector[:count].copy()
        vector[: length - count] = vector[count:].copy()  # what is still to be dealt out moves to the front
        if other == root:
            block[:] = front
        else:
            comm.Send(front, dest=other)
    return block

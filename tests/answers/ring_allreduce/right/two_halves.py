"""Reduce-scatter, then all-gather, each a loop of its own, on NumPy's own blocks."""

import numpy as np


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    blocks = np.array_split(vector, size)
    for step in range(size - 1):
        send, add = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        arrived = np.empty_like(add)
        comm.Sendrecv(send, dest=right, recvbuf=arrived, source=left)
        if op is None:
            add += arrived
        else:
            op.Reduce_local(arrived, add)
    for step in range(size - 1):
        send, replace = blocks[(rank + 1 - step) % size], blocks[(rank - step) % size]
        comm.Sendrecv(send, dest=right, recvbuf=replace, source=left)

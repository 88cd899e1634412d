"""Refused with: How many steps until a block has seen every rank?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    blocks = blocks_of(vector, size)
    for step in range(size - 2):
        take = blocks[(rank - step - 1) % size]
        arrived = np.empty_like(take)
        comm.Sendrecv(blocks[(rank - step) % size], dest=right, recvbuf=arrived, source=left)
        combine(arrived, take, op)
    for step in range(size - 1):
        give, take = blocks[(rank + 1 - step) % size], blocks[(rank - step) % size]
        comm.Sendrecv(give, dest=right, recvbuf=take, source=left)

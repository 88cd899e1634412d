"""Refused with: Who receives while all of you send?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    blocks = blocks_of(vector, size)
    for step in range(2 * (size - 1)):
        take = blocks[(rank - step - 1) % size]
        arrived = np.empty_like(take)
        comm.Send(blocks[(rank - step) % size], dest=(rank + 1) % size)
        comm.Recv(arrived, source=(rank - 1) % size)
        if step < size - 1:
            combine(arrived, take, op)
        else:
            take[:] = arrived

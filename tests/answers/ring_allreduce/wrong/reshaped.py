"""Refused with: Where are the numbers that are left over when P does not divide the length?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    blocks = vector.reshape(size, -1)
    arrived = np.empty_like(blocks[0])
    for step in range(2 * (size - 1)):
        give, take = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        place = arrived if step < size - 1 else take
        comm.Sendrecv(give, dest=(rank + 1) % size, recvbuf=place, source=(rank - 1) % size)
        if step < size - 1:
            combine(place, take, op)

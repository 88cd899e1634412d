"""Refused with: How much of the vector does the other side need in this step?

What published courses have shipped: it is a ring, and the sum is right, but every step moves the whole vector.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def ring_allreduce(comm, vector, op=None):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing, arrived = vector.copy(), np.empty_like(vector)
    for _ in range(comm.size - 1):
        comm.Sendrecv(passing, dest=right, recvbuf=arrived, source=left)
        combine(arrived, vector, op)
        passing, arrived = arrived, passing

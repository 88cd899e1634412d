"""Refused with: Does the loop come to an end?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    theirs = np.empty_like(vector)
    distance = 1
    while distance < size:
        if rank % (2 * distance):
            comm.Send(vector, dest=rank - distance)
        elif rank + distance < size:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, vector, op)

"""Refused with: Whose number is in the sum more than once?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    theirs = np.empty_like(vector)
    distances = [2**k for k in range((size - 1).bit_length())]
    for distance in distances:
        if rank % (2 * distance) == distance:
            comm.Send(vector, dest=rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < size:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, vector, op)
    for distance in reversed(distances):
        if rank % (2 * distance) == distance:
            comm.Recv(theirs, source=rank - distance)
            combine(theirs, vector, op)
        elif rank % (2 * distance) == 0 and rank + distance < size:
            comm.Send(vector, dest=rank + distance)

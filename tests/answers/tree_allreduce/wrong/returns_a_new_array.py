"""Refused with: Did the result arrive in the vector that you were given?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    total, theirs = vector.copy(), np.empty_like(vector)
    distance = 1
    while distance < size and rank % distance == 0:
        if rank % (2 * distance):
            comm.Send(total, dest=rank - distance)
        elif rank + distance < size:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, total, op)
        distance *= 2
    tree_broadcast(comm, total)
    return total

"""Refused with: Sum or mean?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    theirs = np.empty_like(vector)
    distance = 1
    while distance < size and rank % distance == 0:
        if rank % (2 * distance):
            comm.Send(vector, dest=rank - distance)
        elif rank + distance < size:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, vector, op)
        distance *= 2
    if rank == 0:
        vector /= size
    tree_broadcast(comm, vector)

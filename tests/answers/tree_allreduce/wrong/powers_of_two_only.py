"""Refused with: Who is left over when P is not a power of two?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank = comm.rank
    theirs = np.empty_like(vector)
    distance = 1
    while distance < comm.size and rank % distance == 0:
        if rank % (2 * distance):
            comm.Send(vector, dest=rank - distance)
        else:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, vector, op)
        distance *= 2
    tree_broadcast(comm, vector)

"""Refused with: Who sends the message that is waited for?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    theirs = np.empty_like(vector)
    distance = 1
    while distance < size:
        if rank % (2 * distance) == distance:
            comm.Send(vector, dest=rank - distance)
        elif rank + distance < size:
            comm.Recv(theirs, source=rank + distance)
            combine(theirs, vector, op)
        distance *= 2
    tree_broadcast(comm, vector)

"""Refused with: Which operation did the caller ask for?"""

import numpy as np

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
            vector += theirs
        distance *= 2
    tree_broadcast(comm, vector)

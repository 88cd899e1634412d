"""Refused with: Whose number is not in the sum?

Received into the vector itself: the rank's own numbers are gone before anything is added.
"""

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    distance = 1
    while distance < size and rank % distance == 0:
        if rank % (2 * distance):
            comm.Send(vector, dest=rank - distance)
        elif rank + distance < size:
            comm.Recv(vector, source=rank + distance)
            if distance > size:
                combine(vector, vector, op)
        distance *= 2
    tree_broadcast(comm, vector)

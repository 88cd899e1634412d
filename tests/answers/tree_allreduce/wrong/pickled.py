"""Refused with: What travels besides the numbers when you send a pickle?"""

from course_utils.lessons.allreduce.blocks import combine
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    distance = 1
    while distance < size and rank % distance == 0:
        if rank % (2 * distance):
            comm.send(vector, dest=rank - distance)
        elif rank + distance < size:
            combine(comm.recv(source=rank + distance), vector, op)
        distance *= 2
    tree_broadcast(comm, vector)

"""Who are my children, who is my parent? Computed first; returns the vector too."""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    powers = [2**k for k in range(size.bit_length())]
    lowest = next((power for power in powers if rank & power), size)
    children = [rank + power for power in powers if power < lowest and rank + power < size]
    for child in children:
        theirs = np.empty(len(vector), dtype=vector.dtype)
        comm.Recv(theirs, source=child, tag=1)
        combine(theirs, vector, op)
    if rank:
        comm.Send(vector, dest=rank - lowest, tag=1)
        comm.Recv(vector, source=rank - lowest, tag=2)
    for child in reversed(children):
        comm.Send(vector, dest=child, tag=2)
    return vector

"""The binomial tree by bits of the rank, and lesson 4's broadcast."""

import numpy as np

from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    rank, size = comm.Get_rank(), comm.Get_size()
    theirs = np.empty_like(vector)
    bit = 1
    while bit < size:
        if rank & bit:
            comm.Send(vector, dest=rank ^ bit)
            break
        if rank | bit < size:
            comm.Recv(theirs, source=rank | bit)
            if op is None:
                vector += theirs
            else:
                op.Reduce_local(theirs, vector)
        bit <<= 1
    tree_broadcast(comm, vector)

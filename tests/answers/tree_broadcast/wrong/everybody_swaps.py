"""Refused with: Does anybody receive the vector more than once?"""

import numpy as np


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    theirs = np.empty_like(vector)
    step = 1
    while step < comm.size:
        other = place ^ step
        if other < comm.size:
            other_rank = (other + root) % comm.size
            comm.Sendrecv(vector, dest=other_rank, recvbuf=theirs, source=other_rank)
            if step <= place < 2 * step:
                vector[:] = theirs
        step *= 2

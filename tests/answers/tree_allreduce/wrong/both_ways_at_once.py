"""Refused with: Which of two ranks that meet need the sum before the broadcast?

The pairs swap, as in recursive doubling, and then the broadcast brings what everybody has.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out
from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast


def tree_allreduce(comm, vector, op=None):
    theirs = np.empty_like(vector)
    active = fold_in(comm, vector, op)
    distance = 1
    while distance < active and comm.rank < active:
        comm.Sendrecv(vector, dest=comm.rank ^ distance, recvbuf=theirs, source=comm.rank ^ distance)
        combine(theirs, vector, op)
        distance *= 2
    fold_out(comm, vector, active)
    tree_broadcast(comm, vector)

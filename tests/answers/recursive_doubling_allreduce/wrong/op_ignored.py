"""Refused with: Which operation did the caller ask for?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    theirs = np.empty_like(vector)
    distance = 1
    while distance < active and comm.rank < active:
        partner = comm.rank ^ distance
        comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
        vector += theirs
        distance *= 2
    fold_out(comm, vector, active)

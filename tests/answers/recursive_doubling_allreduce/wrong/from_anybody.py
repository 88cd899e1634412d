"""Refused with: Whose message does your receive take?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    theirs = np.empty_like(vector)
    distance = 1
    while distance < active and comm.rank < active:
        comm.Sendrecv(vector, dest=comm.rank ^ distance, recvbuf=theirs)
        combine(theirs, vector, op)
        distance *= 2
    fold_out(comm, vector, active)

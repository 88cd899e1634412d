"""With the helpers for the ranks that are left over."""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    bit = 1
    while bit < active and comm.rank < active:
        theirs = np.empty_like(vector)
        comm.Sendrecv(vector, dest=comm.rank ^ bit, recvbuf=theirs, source=comm.rank ^ bit)
        combine(theirs, vector, op)
        bit <<= 1
    fold_out(comm, vector, active)

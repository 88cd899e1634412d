"""Refused with: In how many binary digits do the numbers of two partners differ?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    theirs = np.empty_like(vector)
    distance = 1
    while distance < active and comm.rank < active:
        partner = comm.rank ^ distance
        comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
        combine(theirs, vector, op)
        distance += 2
    fold_out(comm, vector, active)

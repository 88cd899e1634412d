"""Refused with: Who is left over when P is not a power of two?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def recursive_doubling_allreduce(comm, vector, op=None):
    theirs = np.empty_like(vector)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
        combine(theirs, vector, op)
        distance *= 2

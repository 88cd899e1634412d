"""Refused with: Who is left over when P is not a power of two?

A partner that does not exist is skipped: nothing hangs, and with 3 ranks the sums are wrong.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def recursive_doubling_allreduce(comm, vector, op=None):
    theirs = np.empty_like(vector)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        if partner < comm.size:
            comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
            combine(theirs, vector, op)
        distance *= 2

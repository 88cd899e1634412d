"""Refused with: Do all ranks add in the same order?

Send `distance` ranks on, receive from `distance` ranks back: as many rounds, but every rank brackets differently, and
floating-point sums depend on that.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    theirs = np.empty_like(vector)
    distance = 1
    while distance < active and comm.rank < active:
        to, come_from = (comm.rank + distance) % active, (comm.rank - distance) % active
        comm.Sendrecv(vector, dest=to, recvbuf=theirs, source=come_from)
        combine(theirs, vector, op)
        distance *= 2
    fold_out(comm, vector, active)

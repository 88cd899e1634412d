"""Refused with: Do you use numbers that a receive may still be writing?

Sent from, and received into, the same memory: the standard forbids it.
"""

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    own = vector.copy()
    distance = 1
    while distance < active and comm.rank < active:
        partner = comm.rank ^ distance
        comm.Sendrecv(vector, dest=partner, recvbuf=vector, source=partner)
        combine(own, vector, op)
        own[:] = vector
        distance *= 2
    fold_out(comm, vector, active)

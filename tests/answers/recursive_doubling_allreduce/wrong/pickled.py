"""Refused with: What travels besides the numbers when you send a pickle?"""

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    distance = 1
    while distance < active and comm.rank < active:
        partner = comm.rank ^ distance
        combine(comm.sendrecv(vector, dest=partner, source=partner), vector, op)
        distance *= 2
    fold_out(comm, vector, active)

"""Recursive, as the name says; the lower partner sends first."""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)

    def swap(distance):
        if distance >= active:
            return
        partner = comm.rank ^ distance
        outgoing, incoming = vector.copy(), np.empty_like(vector)
        request = comm.Isend(outgoing, dest=partner)
        comm.Recv(incoming, source=partner)
        combine(incoming, vector, op)
        request.Wait()
        swap(2 * distance)

    if comm.rank < active:
        swap(1)
    fold_out(comm, vector, active)
    return vector

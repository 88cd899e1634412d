"""Irecv, Isend, wait for both, then add; the far partners first; noisy."""

import sys

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def recursive_doubling_allreduce(comm, vector, op=None):
    print("rank", comm.rank, "begins", file=sys.stderr)
    active = fold_in(comm, vector, op)
    distance = active // 2
    while distance and comm.rank < active:
        partner = (comm.rank + distance) % active if (comm.rank // distance) % 2 == 0 else comm.rank - distance
        buffer = np.empty(vector.shape, vector.dtype)
        receive = comm.Irecv(buffer, source=partner, tag=distance)
        send = comm.Isend(vector, dest=partner, tag=distance)
        receive.Wait()
        send.Wait()
        combine(buffer, vector, op)
        distance //= 2
    fold_out(comm, vector, active)
    print("rank", comm.rank, "ends")

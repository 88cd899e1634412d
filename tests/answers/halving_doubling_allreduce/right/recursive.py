"""Recursive: give half away, sum the other half in a smaller group, get it back. No blocks, only begin and end."""

import sys

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def halving_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)

    def go(begin, end, distance):
        print("rank", comm.rank, "has", begin, end, file=sys.stderr)
        if distance == 0:
            return
        middle = (begin + end) // 2
        lower = comm.rank & distance == 0
        mine, theirs = ((begin, middle), (middle, end)) if lower else ((middle, end), (begin, middle))
        partner = comm.rank ^ distance
        arrived = np.empty(mine[1] - mine[0], vector.dtype)
        comm.Sendrecv(vector[slice(*theirs)], dest=partner, recvbuf=arrived, source=partner)
        combine(arrived, vector[slice(*mine)], op)
        go(*mine, distance // 2)
        comm.Sendrecv(vector[slice(*mine)], dest=partner, recvbuf=vector[slice(*theirs)], source=partner)

    if comm.rank < active:
        go(0, len(vector), active // 2)
    fold_out(comm, vector, active)

"""Refused with: Where are the numbers that are left over when P does not divide the length?

Blocks of n // P: the last numbers are in none of them.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def halving_doubling_allreduce(comm, vector, op=None):
    rank, active = comm.rank, fold_in(comm, vector, op)
    if rank < active:
        bounds = [len(vector) // active * block for block in range(active + 1)]

        def part(who, width):
            first = who - who % width
            return vector[bounds[first] : bounds[first + width]]

        widths = [2**k for k in range(active.bit_length() - 1)]
        for width in reversed(widths):
            partner = rank ^ width
            arrived = np.empty_like(part(rank, width))
            comm.Sendrecv(part(partner, width), dest=partner, recvbuf=arrived, source=partner)
            combine(arrived, part(rank, width), op)
        for width in widths:
            partner = rank ^ width
            comm.Sendrecv(part(rank, width), dest=partner, recvbuf=part(partner, width), source=partner)
    fold_out(comm, vector, active)

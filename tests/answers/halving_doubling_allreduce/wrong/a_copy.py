"""Refused with: Did the result arrive in the vector that you were given?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import block_bounds, combine, fold_in, fold_out


def halving_doubling_allreduce(comm, vector, op=None):
    vector = vector.copy()
    rank, active = comm.rank, fold_in(comm, vector, op)
    if rank < active:
        bounds = block_bounds(len(vector), active)

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

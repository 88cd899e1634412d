"""Whose part of the vector is it? A function says, for any rank and distance."""

import numpy as np

from course_utils.lessons.allreduce.blocks import block_bounds, combine, fold_in, fold_out


def halving_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    rank = comm.rank
    if rank < active:
        bounds = block_bounds(len(vector), active)

        def part(who, width):
            first = who - who % width
            return vector[bounds[first] : bounds[first + width]]

        width = active // 2
        while width:
            arrived = np.empty_like(part(rank, width))
            comm.Sendrecv(part(rank ^ width, width), dest=rank ^ width, recvbuf=arrived, source=rank ^ width)
            combine(arrived, part(rank, width), op)
            width //= 2
        width = 1
        while width < active:
            comm.Sendrecv(part(rank, width), dest=rank ^ width, recvbuf=part(rank ^ width, width), source=rank ^ width)
            width *= 2
    fold_out(comm, vector, active)

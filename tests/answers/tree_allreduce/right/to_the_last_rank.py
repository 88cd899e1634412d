"""The tree stands on its head: the root is the last rank; nonblocking, with prints on both streams."""

import sys

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def tree_allreduce(comm, vector, op=None):
    size = comm.size
    place = size - 1 - comm.rank
    print("my place is", place, file=sys.stderr)
    steps = []
    step = 1
    while step < size:
        steps.append(step)
        step *= 2
    for step in steps:
        if place % (2 * step) == step:
            comm.Isend(vector, dest=size - 1 - (place - step)).Wait()
        elif place % (2 * step) == 0 and place + step < size:
            arrived = np.empty_like(vector)
            comm.Irecv(arrived, source=size - 1 - (place + step)).Wait()
            combine(arrived, vector, op)
    for step in reversed(steps):
        if place % (2 * step) == step:
            comm.Irecv(vector, source=size - 1 - (place - step)).Wait()
        elif place % (2 * step) == 0 and place + step < size:
            comm.Isend(vector, dest=size - 1 - (place + step)).Wait()
    print("done")

"""Recursive: cut the ranks in two halves; each adds up on its first rank, the two meet, and so back down."""

import numpy as np


def tree_allreduce(comm, vector, op=None):
    me = comm.rank

    def combine(theirs):
        if op is None:
            vector[:] = vector + theirs
        elif len(vector):
            op.Reduce_local(theirs, vector)

    def go(first, end, up):
        if end - first < 2:
            return
        middle = (first + end + 1) // 2
        mine = (first, middle) if me < middle else (middle, end)
        if up:
            go(*mine, up)
            if me == middle:
                comm.Send(vector, dest=first)
            elif me == first:
                theirs = np.zeros(vector.shape, vector.dtype)
                comm.Recv(theirs, source=middle)
                combine(theirs)
        else:
            if me == middle:
                comm.Recv(vector, source=first)
            elif me == first:
                comm.Send(vector, dest=middle)
            go(*mine, up)

    go(0, comm.size, True)
    go(0, comm.size, False)

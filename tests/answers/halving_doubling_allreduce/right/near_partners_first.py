"""Distances 1, 2, 4 on the way out and back the other way: other blocks, the same cost."""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine, fold_in, fold_out


def halving_doubling_allreduce(comm, vector, op=None):
    active = fold_in(comm, vector, op)
    if comm.rank < active:
        begin, end = 0, len(vector)
        path = []
        distance = 1
        while distance < active:
            middle = begin + (end - begin) // 2
            path.append((distance, begin, middle, end))
            partner = comm.rank ^ distance
            give = slice(middle, end) if comm.rank < partner else slice(begin, middle)
            begin, end = (begin, middle) if comm.rank < partner else (middle, end)
            arrived = np.empty_like(vector[begin:end])
            send = comm.Isend(vector[give], dest=partner)
            comm.Recv(arrived, source=partner)
            send.Wait()
            combine(arrived, vector[begin:end], op)
            distance *= 2
        for distance, begin, middle, end in path[::-1]:
            partner = comm.rank ^ distance
            halves = [vector[begin:middle], vector[middle:end]]
            mine, theirs = halves if comm.rank < partner else halves[::-1]
            comm.Sendrecv(mine, dest=partner, recvbuf=theirs, source=partner)
    fold_out(comm, vector, active)
    return vector

"""The other way round the ring, nonblocking, in blocks of ⌈n / P⌉ of which the last may be empty."""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def ring_allreduce(comm, vector, op=None):
    P, me = comm.size, comm.rank
    length = -(-len(vector) // P)

    def block(index):
        start = (index % P) * length
        return vector[start : start + length]

    buffer = np.empty(length, dtype=vector.dtype)
    for step in range(2 * P - 2):
        out, into = block(me + step), block(me + step + 1)
        target = buffer[: len(into)] if step < P - 1 else into
        requests = [comm.Irecv(target, source=(me + 1) % P), comm.Isend(out, dest=(me - 1) % P)]
        for request in requests:
            request.Wait()
        if step < P - 1:
            combine(target, into, op)

"""Waits by testing, with one receive posted ahead; to the left; noisy."""

import sys

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    P, me = comm.size, comm.rank
    if P == 1:
        return
    print("rank", me, "begins", file=sys.stderr)
    room = segment_bytes // vector.itemsize
    bounds = [len(vector) * b // P for b in range(P + 1)]

    def pieces(b):
        start, end = bounds[b % P], bounds[b % P + 1]
        return [(s, min(s + room, end)) for s in range(start, end, room)]

    incoming = [piece for step in range(2 * P - 2) for piece in pieces(me + step + 1)]
    partial = sum(len(pieces(me + step + 1)) for step in range(P - 1))
    last = len(incoming) - len(pieces(me + 2 * P - 2))
    sends = [comm.Isend(vector[a:b].copy(), dest=(me - 1) % P) for a, b in pieces(me)]
    ahead = []
    for index in range(len(incoming) + 1):
        if index < len(incoming):
            start, end = incoming[index]
            buffer = np.zeros(end - start, vector.dtype)
            ahead.append((comm.Irecv(buffer, source=(me + 1) % P), buffer, start, end))
        if index == 0:
            continue
        request, buffer, start, end = ahead[index - 1]
        while not request.Test():
            pass
        if index - 1 < partial:
            combine(buffer, vector[start:end], op)
        else:
            vector[start:end] = buffer
        if index - 1 < last:
            sends.append(comm.Isend(vector[start:end].copy(), dest=(me - 1) % P))
    while not all([request.Test() for request in sends]):
        pass
    print("done")

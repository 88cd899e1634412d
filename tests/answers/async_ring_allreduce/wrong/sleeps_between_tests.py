"""Refused with: Where does a rank wait although it could go on?"""

import time

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    room = max(1, segment_bytes // vector.itemsize)
    blocks = blocks_of(vector, size)

    def segments(step):
        block = blocks[(rank - step) % size]
        return [block[start : start + room] for start in range(0, len(block), room)]

    steps = 2 * (size - 1)
    sends = [comm.Isend(part.copy(), dest=right) for part in segments(0)] if size > 1 else []
    for step in range(steps):
        parts = segments(step + 1)
        places = [np.empty_like(part) for part in parts]
        requests = [comm.Irecv(place, source=left) for place in places]
        for request, place, part in zip(requests, places, parts, strict=True):
            while not request.Test():
                time.sleep(0.1)
            if step < size - 1:
                combine(place, part, op)
            else:
                part[:] = place
            if step + 1 < steps:
                sends.append(comm.Isend(part.copy(), dest=right))
    for request in sends:
        request.Wait()

"""Refused with: How much of the vector does the other side need in this step?

Segments, and passed on early, but of the whole vector: P - 1 vectors sent by each rank.
"""

import numpy as np

from course_utils.lessons.allreduce.blocks import combine


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    room = max(1, segment_bytes // vector.itemsize)
    parts = [vector[start : start + room] for start in range(0, len(vector), room)]
    sends = [comm.Isend(part.copy(), dest=right) for part in parts] if size > 1 else []
    for step in range(size - 1):
        for part in parts:
            place = np.empty_like(part)
            comm.Irecv(place, source=left).Wait()
            combine(place, part, op)
            if step < size - 2:
                sends.append(comm.Isend(place, dest=right))
    for request in sends:
        request.Wait()

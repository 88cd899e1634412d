"""Refused with: Which call begins a message and does not wait for its end?"""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    room = max(1, segment_bytes // vector.itemsize)
    blocks = blocks_of(vector, size)
    longest = max(len(block) for block in blocks)
    for step in range(2 * (size - 1)):
        give, take = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        for start in range(0, longest, room):
            out, into = give[start : start + room], take[start : start + room]
            place = np.empty_like(into)
            comm.Sendrecv(out, dest=right, recvbuf=place, source=left)
            if step < size - 1:
                combine(place, into, op)
            else:
                into[:] = place

"""Only the sends are nonblocking: several are on their way while one Recv waits for the next segment. Recursive."""

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    rank, size = comm.rank, comm.size
    room = max(1, segment_bytes // vector.itemsize)
    blocks = blocks_of(vector, size)
    sends = []

    def send(part):
        sends.append(comm.Isend(np.array(part), dest=(rank + 1) % size))

    def segments(block):
        whole = blocks[block % size]
        return [whole[begin : begin + room] for begin in range(0, len(whole), room)]

    def step(number):
        if number == 2 * size - 2:
            return
        for part in segments(rank - number - 1):
            arrived = np.zeros(len(part), part.dtype)
            comm.Recv(arrived, source=(rank - 1) % size)
            if number < size - 1:
                combine(arrived, part, op)
            else:
                part[:] = arrived
            if number < 2 * size - 3:
                send(part)
        step(number + 1)

    if size > 1:
        for part in segments(rank):
            send(part)
    step(0)
    for request in sends:
        request.Wait()
    return vector

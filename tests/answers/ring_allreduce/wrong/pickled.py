"""Refused with: What travels besides the numbers when you send a pickle?"""

from course_utils.lessons.allreduce.blocks import blocks_of, combine


def ring_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    blocks = blocks_of(vector, size)
    for step in range(2 * (size - 1)):
        take = blocks[(rank - step - 1) % size]
        arrived = comm.sendrecv(blocks[(rank - step) % size], dest=(rank + 1) % size, source=(rank - 1) % size)
        if step < size - 1:
            combine(arrived, take, op)
        else:
            take[:] = arrived

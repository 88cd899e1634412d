"""The last block takes what is left over; nothing is sent where a block is empty; the result is returned as well."""

import numpy as np


def ring_allreduce(comm, vector, op=None):
    size, rank = comm.size, comm.rank
    if size == 1:
        return vector
    short = len(vector) // size
    starts = [block * short for block in range(size)] + [len(vector)]
    right, left = (rank + 1) % size, (rank + size - 1) % size
    send_block, buffer = rank, np.empty(len(vector) - starts[size - 1], vector.dtype)
    for step in range(2 * size - 2):
        recv_block = (send_block - 1) % size
        mine = vector[starts[send_block] : starts[send_block + 1]]
        theirs = vector[starts[recv_block] : starts[recv_block + 1]]
        arrived = buffer[: len(theirs)]
        requests = []
        if len(theirs):
            requests.append(comm.Irecv(arrived, source=left))
        if len(mine):
            requests.append(comm.Isend(mine, dest=right))
        type(requests[0]).Waitall(requests) if requests else None
        if step < size - 1:
            theirs[:] = arrived + theirs if op is None else _reduced(op, arrived, theirs)
        else:
            theirs[:] = arrived
        send_block = recv_block
    return vector


def _reduced(op, arrived, theirs):
    result = theirs.copy()
    if len(result):
        op.Reduce_local(arrived, result)
    return result

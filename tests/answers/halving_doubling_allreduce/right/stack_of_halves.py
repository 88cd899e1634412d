"""Remembers on a stack what was given away to whom, and takes it back in the other order; nonblocking."""

import numpy as np


def halving_doubling_allreduce(comm, vector, op=None):
    rank, size = comm.rank, comm.size
    active = 1
    while 2 * active <= size:
        active *= 2

    def add(arrived, into):
        if op is None:
            into += arrived
        elif len(into):
            op.Reduce_local(arrived, into)

    if rank >= active:
        comm.Send(vector, dest=rank - active)
        comm.Recv(vector, source=rank - active)
        return
    if rank + active < size:
        whole = np.empty_like(vector)
        comm.Recv(whole, source=rank + active)
        add(whole, vector)
    given, own, distance = [], vector, active
    while distance > 1:
        distance //= 2
        lower, upper = own[: len(own) // 2], own[len(own) // 2 :]
        own, other = (upper, lower) if rank & distance else (lower, upper)
        arrived = np.zeros_like(own)
        requests = [comm.Irecv(arrived, source=rank ^ distance), comm.Isend(other, dest=rank ^ distance)]
        [request.Wait() for request in requests]
        add(arrived, own)
        given.append((rank ^ distance, own, other))
    for partner, kept, other in reversed(given):
        requests = [comm.Irecv(other, source=partner), comm.Isend(kept, dest=partner)]
        [request.Wait() for request in requests]
    if rank + active < size:
        comm.Send(vector, dest=rank + active)

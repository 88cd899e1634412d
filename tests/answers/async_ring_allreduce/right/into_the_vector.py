"""Finished sums are received where they belong, once what stood there has left; one buffer for all partial sums."""

import numpy as np


def async_ring_allreduce(comm, vector, op=None, segment_bytes=262144):
    rank, size = comm.Get_rank(), comm.Get_size()
    count = max(1, -(-(-(-len(vector) // size) * vector.itemsize) // segment_bytes))
    pieces = [np.array_split(block, count) for block in np.array_split(vector, size)]
    arrays = np.empty_like(vector)
    places = [np.array_split(block, count) for block in np.array_split(arrays, size)]
    right, left = (rank + 1) % size, (rank - 1) % size
    sent = {}
    if size > 1:
        for number, piece in enumerate(pieces[rank]):
            sent[rank, number] = comm.Isend(piece, dest=right)
    for step in range(size - 1):
        block = (rank - step - 1) % size
        waiting = [comm.Irecv(place, source=left) for place in places[block]]
        for number, request in enumerate(waiting):
            request.Wait()
            if op is None:
                pieces[block][number] += places[block][number]
            elif len(pieces[block][number]):
                op.Reduce_local(places[block][number], pieces[block][number])
            sent[block, number] = comm.Isend(pieces[block][number], dest=right)
    for step in range(size - 1):
        block = (rank - step) % size
        waiting = []
        for number, piece in enumerate(pieces[block]):
            sent[block, number].Wait()
            waiting.append(comm.Irecv(piece, source=left))
        for number, request in enumerate(waiting):
            request.Wait()
            if step < size - 2:
                sent[block, number] = comm.Isend(pieces[block][number], dest=right)
    for request in sent.values():
        request.Wait()

"""Each step calls itself for the next one, and says on stdout and stderr what it does."""

import sys
import warnings

import numpy as np


def ring_allreduce(comm, vector, op=None):
    size, rank = comm.size, comm.rank
    bounds = [len(vector) * block // size for block in range(size + 1)]
    warnings.warn("summing", stacklevel=1)

    def part(block):
        return slice(bounds[block % size], bounds[block % size + 1])

    def go(step):
        if step == 2 * (size - 1):
            return
        print("step", step, file=sys.stderr)
        give, take = part(rank - step), part(rank - step - 1)
        incoming = np.zeros(take.stop - take.start, vector.dtype)
        wait = comm.Isend(vector[give].copy(), dest=(rank + 1) % size)
        comm.Recv(incoming, source=(rank - 1) % size)
        wait.Wait()
        if step >= size - 1:
            vector[take] = incoming
        elif op is None:
            vector[take] = vector[take] + incoming
        else:
            op.Reduce_local(incoming, vector[take])
        go(step + 1)

    go(0)
    print("done")

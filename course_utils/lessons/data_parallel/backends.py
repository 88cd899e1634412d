"""One all-reduce, three programs that carry it out: MPI's own, gloo's, and the course's ring, timed by turns."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.distributed as dist

from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.measuring import by_turns

Seconds = dict[str, list[list[float]]]
"""For each program, at each size, the seconds of all runs."""


def backend_seconds(sizes: Sequence[int], runs: int = 5) -> Seconds:
    """On every rank of a group of gloo: seconds of an all-reduce by each program, until the last rank has the sum.

    All three add the same vectors, float32. MPI and the ring send over MPI's connections, gloo over its
    own; both pass the same links. A first round is not counted.

    Args:
        sizes: bytes of the vector.

    Raises:
        ValueError: a program does not give the sum.

    Source: mpi4py's `Comm.Allreduce`; `torch.distributed.all_reduce`; Patarasuk and Yuan 2009 for the ring.
    """
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    programs: dict[str, Callable[[np.ndarray], object]] = {
        "MPI": lambda vector: comm.Allreduce(MPI.IN_PLACE, vector),
        "gloo": lambda vector: dist.all_reduce(torch.from_numpy(vector)),  # shares the vector's memory
        "our ring": lambda vector: ring_allreduce(comm, vector),
    }

    def one_run(name: str, size: int) -> float:
        vector = np.full(size // 4, comm.rank + 1, np.float32)
        comm.Barrier()
        began = time.perf_counter()
        programs[name](vector)
        seconds = comm.allreduce(time.perf_counter() - began, op=MPI.MAX)
        if not (vector == comm.size * (comm.size + 1) / 2).all():
            raise ValueError(f"{name} does not give the sum of {size} bytes")
        return seconds

    measures = {(name, size): partial(one_run, name, size) for size in sizes for name in programs}
    taken = by_turns(measures, runs, warm_ups=1)
    return {name: [taken[name, size] for size in sizes] for name in programs}

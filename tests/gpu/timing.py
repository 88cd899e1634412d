"""Seconds on a GPU, by its own clock: events in its queue; on a processor by the processor's."""

import time
from collections.abc import Callable

import torch

from gpu.registry import Where


def seconds(where: Where, work: Callable[[], object], calls: int = 1) -> float:
    """Of one call of `work`, the mean of this many; the GPU is at rest before and done afterwards."""
    if not where.cuda:
        began = time.perf_counter()
        for _ in range(calls):
            work()
        return (time.perf_counter() - began) / calls
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def again(where: Where, work: Callable[[], object], runs: int = 9, calls: int = 1, warm_ups: int = 3) -> list[float]:
    """`seconds`, several times; the first calls, in which libraries choose their kernels, do not count."""
    for _ in range(warm_ups):
        work()
    return [seconds(where, work, calls) for _ in range(runs)]

"""What the bench of profiling does on the ranks: steps with the profiler and without."""

import time
from collections.abc import Callable

import torch.distributed as dist

from course_utils.lessons.overlap.step_times import Way
from course_utils.lessons.profiling.record_profiles import training_step
from course_utils.measuring import Compared, slowest_rank


def with_and_without(way: Way, rounds: int, batch: int, warm_up: int = 2) -> Compared:
    """On every rank: the seconds of a step without the profiler, and of one under it, by turns.

    Starting the profiler and writing its trace are not in them.
    """
    from torch.profiler import ProfilerActivity, profile

    step, plain, profiled = training_step(way, batch), [], []
    for _ in range(warm_up + rounds):
        with profile(activities=[ProfilerActivity.CPU]):
            profiled.append(_seconds(step))
        plain.append(_seconds(step))
    return Compared(plain[warm_up:], profiled[warm_up:], ("without the profiler", "with it"))


def _seconds(step: Callable[[], object]) -> float:
    """A step, on the rank that takes longest; all begin together."""
    dist.barrier()
    begin = time.perf_counter()
    step()
    return slowest_rank(time.perf_counter() - begin)

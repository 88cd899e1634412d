"""What the bench of profiling does on the ranks: steps with the profiler and without."""

import time
from collections.abc import Callable
from functools import partial

import torch.distributed as dist

from course_utils.lessons.overlap.step_times import Way
from course_utils.lessons.profiling.record_profiles import training_step
from course_utils.measuring import Compared, by_turns, slowest_rank


def with_and_without(wrap: Way, rounds: int, batch: int, warm_up: int = 2) -> Compared:
    """On every rank: the seconds of a step without the profiler, and of one under it, by turns.

    Starting the profiler and writing its trace are not in them.
    """
    from torch.profiler import ProfilerActivity, profile

    step = training_step(wrap, batch)

    def profiled() -> float:
        with profile(activities=[ProfilerActivity.CPU]):
            return _seconds(step)

    taken = by_turns({"with it": profiled, "without the profiler": partial(_seconds, step)}, rounds, warm_up)
    names = "without the profiler", "with it"
    return Compared(*(taken[name] for name in names), names)


def _seconds(step: Callable[[], object]) -> float:
    """A step, on the rank that takes longest; all begin together."""
    dist.barrier()
    begin = time.perf_counter()
    step()
    return slowest_rank(time.perf_counter() - begin)

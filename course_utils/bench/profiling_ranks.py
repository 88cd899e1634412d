"""What the bench of profiling does on the ranks: the slow programs that need several, and steps with the profiler."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from course_utils.data import digits
from course_utils.profiling.ratio import Ratio, measure_ratio, slowest_rank
from course_utils.profiling.record import training_step
from course_utils.profiling.slow import host_waits, input_pipeline, no_overlap, small_kernels, unbalanced
from course_utils.step_times import Way

Programs = tuple[Callable, Callable, tuple]
"""A slow program, a faster one, and the arguments of both."""


def programs(folder: Path) -> dict[str, Programs]:
    """Name → the two programs and this rank's inputs; the photos go into the folder."""
    data = digits()
    random = torch.Generator().manual_seed(dist.get_rank())
    x, y = torch.randn(2, 4, no_overlap.WIDTH, generator=random)
    batch = data.train_x[:64], data.train_y[:64]
    paths = input_pipeline.write_photos(folder)
    return {
        "1 input pipeline": (input_pipeline.slow_1, input_pipeline.speed_up_1, (paths, data.train_y[: len(paths)])),
        "2 host waits": (host_waits.slow_2, host_waits.speed_up_2, (data.train_x, data.train_y)),
        "3 small kernels": (small_kernels.slow_3, small_kernels.speed_up_3, batch),
        "4 unbalanced": (unbalanced.slow_4, unbalanced.speed_up_4, (unbalanced.sample_texts(),)),
        "5 no overlap": (no_overlap.slow_5, no_overlap.speed_up_5, (x, y)),
    }


def ratio_of(name: str, rounds: int) -> Ratio:
    """On every rank: both programs by turns."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        slow, fast, arguments = programs(Path(folder))[name]
        return measure_ratio(partial(slow, *arguments), partial(fast, *arguments), rounds=rounds, slowest=slowest_rank)


def with_and_without(way: Way, rounds: int, batch: int, warm_up: int = 2) -> Ratio:
    """On every rank: the seconds of a step under the profiler (`slow`) and of one without (`fast`), by turns.

    Starting the profiler and writing its trace are not in them.
    """
    from torch.profiler import ProfilerActivity, profile

    step, taken = training_step(way, batch), Ratio()
    for number in range(warm_up + rounds):
        with profile(activities=[ProfilerActivity.CPU]):
            profiled = _seconds(step)
        plain = _seconds(step)
        if number >= warm_up:
            taken.slow.append(profiled)
            taken.fast.append(plain)
    return taken


def _seconds(step: Callable[[], object]) -> float:
    """A step, on the rank that takes longest; all begin together."""
    dist.barrier()
    begin = time.perf_counter()
    step()
    return slowest_rank(time.perf_counter() - begin)

"""Lessons 13 and 14: the training program with its switches, and the slow programs beside the faster ones."""

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from gpu.on_ranks import on_ranks
from gpu.registry import Where, check, equal
from gpu.timing import again, seconds
from workshop.bench.rows import ratio_row, value_row


def trained(device: torch.device, folder: str, **switches: bool) -> tuple[float, str, str]:
    """On each rank: the loss of the course's training program, what carried its gradients, where its weights were."""
    from course_utils.lessons.gpu_nodes.train_ddp import Settings, train_ddp

    result = train_ddp(replace(Settings(folder, epochs=1, batch_size=64), **switches))
    return result.loss, result.backend, str(device)


@check(13, shows="the training program finds its GPU and NCCL, bfloat16 ends with nearly the same loss", seconds=300)
def training_program(where: Where):
    import sklearn.datasets  # noqa: F401 - where the digits come from

    ranks = where.world_sizes[-1]
    who = f"P = {ranks}{' that share a GPU' if where.shared else ''}"
    losses = {}
    for name, switches in {"fp32": {}, "bf16": {"bf16": True}}.items():
        with tempfile.TemporaryDirectory() as folder:
            results = on_ranks(where, ranks, _in_gloo, folder, switches)
        losses[name] = results[0][0]
        yield value_row("gpu", f"{name}, loss after an epoch, {who}", [losses[name]], "")
        due = "gloo" if where.shared else where.backend  # for the course itself, ranks that share a GPU use none
        wrong = sum(backend != due for _, backend, _ in results)
        yield equal(f"{name}, ranks that did not use {due}, {who}", wrong, target=0)
    yield equal("bf16 beside fp32, difference of the loss", abs(losses["bf16"] / losses["fp32"] - 1), target=0.1)


def _in_gloo(device: torch.device, folder: str, switches: dict) -> tuple[float, str, str]:
    """The program's default group is gloo's, and NCCL is a group beside it."""
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/meeting", ranks), rank=rank, world_size=ranks)
    return trained(device, folder, **switches)


def steps_by_width(device: torch.device, folder: str, widths: tuple[int, ...]) -> dict[int, dict[str, list[float]]]:
    """On each rank: seconds of lesson 13's step in float32 and in bfloat16, by the width of its layers."""
    import torch.distributed as dist

    from course_utils.lessons.gpu_nodes.measured_training import step_seconds
    from course_utils.lessons.gpu_nodes.train_ddp import Settings

    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/meeting", 1), rank=0, world_size=1)
    found = {}
    for width in widths:
        plain = Settings(folder, epochs=1, batch_size=256, hidden=width)
        found[width] = step_seconds({"float32": plain, "bfloat16": replace(plain, bf16=True)})[1]
    return found


@check(13, shows="what bfloat16 gains by the width of a layer")
def widths(where: Where):
    import sklearn.datasets  # noqa: F401 - where the digits come from

    with tempfile.TemporaryDirectory() as folder:
        found = on_ranks(where, 1, steps_by_width, folder, where.pick((64, 1024, 4096, 16384), (16, 64)))[0]
    for width, taken in found.items():
        yield value_row("gpu", f"width {width}, float32", [1e3 * one for one in taken["float32"]], "ms")
        yield ratio_row("gpu", f"width {width}, gain", taken["float32"], taken["bfloat16"], better="higher")


def slow_and_fast(device: torch.device, where: Where) -> dict[str, tuple[list[float], list[float], float]]:
    """On each rank: seconds of the slow and of the faster program, by turns, and how far their losses differ."""
    from course_utils.lessons.profiling.slow.host_waits import slow_2, speed_up_2
    from course_utils.lessons.profiling.slow.small_kernels import slow_3, speed_up_3

    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(512, 64, generator=generator), torch.randint(10, (512,), generator=generator)
    found = {}
    for name, pair in {".item() in every step": (slow_2, speed_up_2), "small kernels": (slow_3, speed_up_3)}.items():
        logs, taken = [], ([], [])
        for turn in range(where.pick(6, 2)):
            for program, times in zip(pair, taken, strict=True):
                one = seconds(where, lambda program=program, logs=logs: logs.append(program(x, y, device=str(device))))
                if turn:
                    times.append(one)
        off = max(abs(mine - theirs) for mine, theirs in zip(logs[0], logs[1], strict=True))
        found[name] = (*taken, off)
    return found


@check(14, shows="two of lesson 14's slow programs beside the faster ones, with the same losses")
def slow_programs(where: Where):
    ranks = where.world_sizes[-1]
    results = on_ranks(where, ranks, slow_and_fast, where)
    for name, (slow, fast, _) in results[0].items():
        yield ratio_row("gpu", f"{name}, slow / fast, P = {ranks}", slow, fast, better="higher")
        yield equal(f"{name}, losses", max(one[name][2] for one in results), target=1e-3)


def profiled(device: torch.device, where: Where) -> tuple[dict, list[float]]:
    """On each rank: the trace of three steps of VGG-11 whose gradients travel in buckets, and seconds of such steps."""
    from course_utils.lessons.overlap.buckets import overlapped
    from course_utils.lessons.profiling.record_profiles import profile_steps
    from course_utils.vgg import random_images, vgg11

    # A batch so large that the GPU is always behind the program, and what the profiler costs the program is hidden.
    x, y = (one.pin_memory() if where.cuda else one for one in random_images(where.pick(512, 2)))
    replica = overlapped(vgg11(width=where.pick(1.0, 0.125), seed=0).to(device).train())

    def step() -> None:
        images, labels = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        torch.nn.functional.cross_entropy(replica.module(images), labels).backward()
        replica.finish()

    trace, _ = profile_steps(lambda: step)
    return trace, again(where, step)


@check(14, shows="the lanes of a real profile: sound, whole, and as long as the steps that the GPU's own clock times")
def profile(where: Where):
    import numpy as np  # noqa: F401 - which the course's recorder needs

    from course_utils.lessons.profiling.chrome_trace import problems, write_trace
    from course_utils.lessons.profiling.intervals import length
    from course_utils.lessons.profiling.lanes import lanes_of
    from course_utils.lessons.profiling.merged_trace import merge

    ranks = where.world_sizes[-1]
    traces, taken = zip(*on_ranks(where, ranks, profiled, where), strict=True)
    merged = merge(traces)
    if where.out:
        write_trace(merged, Path(where.out) / f"profile-{ranks}.json.gz")
    yield equal(f"what is wrong with the trace, P = {ranks}", len(problems(merged)), target=0)
    lanes = lanes_of(merged)[0]
    steps = [end - begin for begin, end in lanes.each_step]
    by_clock = statistics.median(max(each) for each in zip(*taken, strict=True))
    apart = abs(statistics.median(steps) / by_clock - 1)
    yield value_row(
        "gpu",
        f"a step of the trace beside one by the clock, P = {ranks}",
        [apart],
        "of it",
        target=where.pick(0.05, None),
    )
    for name, times in {"computes": lanes.computing, "copies": lanes.copies, "sends": lanes.communication}.items():
        yield value_row("gpu", f"{name}, P = {ranks}", [length(times) / lanes.seconds], "of the steps", better="higher")
    yield value_row("gpu", f"idle, P = {ranks}", [lanes.idle_share], "of the steps")

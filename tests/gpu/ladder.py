"""Lesson 13's ladder on VGG-11: what each rung gains, and how near the last one comes to what the GPU can do."""

import contextlib
from dataclasses import replace
from pathlib import Path

import torch

from course_utils.lessons.gpu_nodes.ladder import LADDER, Climb, Rung, climb
from gpu.registry import Needs, Where, check, equal, needs_gpu
from workshop.bench.rows import ratio_row, value_row

BY_HAND = {name: rung for name, rung in LADDER.items() if not (rung.compiled or rung.graph)}
"""The rungs that take no compiler and no graph."""
TOP = list(BY_HAND.values())[-1]


def climbed(where: Where, rungs: dict[str, Rung], name: str, batch: int = 512) -> Climb:
    """Measure these, and bring the figures home under a name."""
    sizes = {"width": where.pick(1.0, 0.125), "batch": where.pick(batch, 4)}
    found = climb(rungs, where.device, **sizes, rounds=where.pick(9, 3), steps=where.pick(10, 1))
    if where.out:
        with contextlib.suppress(OSError):
            found.write(Path(where.out) / f"{name}.json")
    return found


def rows_of(where: Where, found: Climb):
    """Images per second and MFU of each rung, each beside the one before it, and the last beside the first."""
    for name, rates in found.rates().items():
        yield value_row("gpu", name, rates, "images/s", better="higher")
        yield value_row("gpu", f"{name}, MFU by the data sheet", [100 * found.mfu()[name]], "%", better="higher")
    names = list(found.seconds)
    for before, name in zip(names, names[1:], strict=False):
        yield ratio_row("gpu", f"{name}, gain", found.seconds[before], found.seconds[name], better="higher")
    if len(names) > 2:
        new = where.cuda and torch.cuda.get_device_capability() >= (8, 0)
        pair = found.seconds[names[0]], found.seconds[names[-1]]
        yield ratio_row("gpu", f"{names[-1]} / {names[0]}", *pair, target=1.0 if new else None, better="higher")
    first = list(found.first_loss.values())
    yield equal("first loss, largest difference / the first's", max(abs(one / first[0] - 1) for one in first), 0.02)


@check(13, shows="VGG-11's throughput: data kept on the device, TF32, bfloat16, channels last, one after the other")
def precision_ladder(where: Where):
    yield from rows_of(where, climbed(where, BY_HAND, "by-hand"))


@check(13, 14, shows="the whole ladder, with torch.compile and a CUDA graph of the compiled step on top")
def whole_ladder(where: Where):
    if where.cuda:
        needs_triton()
    rungs = LADDER if where.cuda else {name: rung for name, rung in LADDER.items() if not rung.graph}
    yield from rows_of(where, climbed(where, rungs, "ladder"))


@check(13, 14, shows="what the compiler and a CUDA graph of a whole step gain where batches are small")
def small_batches(where: Where):
    needs_gpu(where)
    needs_triton()
    rungs = {"batches of 32": TOP, "+ CUDA graph": replace(TOP, graph=True), "compiled": replace(TOP, compiled=True)}
    yield from rows_of(where, climbed(where, rungs, "small-batches", batch=32))


def needs_triton() -> None:
    """The compiler's kernels for GPUs are written in it.

    Raises:
        Needs: triton.
    """
    try:
        import triton  # noqa: F401
    except ImportError:
        raise Needs("triton") from None

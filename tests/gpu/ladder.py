"""Lesson 13's ladder on VGG-11: what each rung gains, and how near the last one comes to what the GPU can do."""

import contextlib
from dataclasses import replace
from pathlib import Path

import torch

from course_utils.lessons.gpu_nodes.ladder import LADDER, LARGER, Climb, Rung, climb
from course_utils.measuring import Measured
from gpu.registry import Needs, Where, check, equal, needs_gpu
from workshop.bench.rows import Row, ratio_row, value_row

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


def rows_of(found: Climb):
    """Images per second of each rung, its MFU and its share of the product, and how it compares with the one before."""
    mfu, shares, taken = found.mfu(), found.product_shares(), found.image_seconds()
    for name, rates in found.rates().items():
        yield value_row("gpu", name, rates, "images/s", better="higher")
        yield _percent_row(f"{name}, MFU by the data sheet", mfu[name])
        yield _percent_row(f"{name}, of the product", shares[name])
    yield value_row("gpu", "the product, by turns with them", [one / 1e12 for one in found.peaks], "TFLOP/s")
    names = list(taken)
    for before, name in zip(names, names[1:], strict=False):
        yield ratio_row("gpu", f"{name}, gain", taken[before], taken[name], better="higher")
    first = [loss for name, loss in found.first_loss.items() if found.images[name] == found.images[names[0]]]
    yield equal("first loss, largest difference / the first's", max(abs(one / first[0] - 1) for one in first), 0.02)


def _percent_row(metric: str, share: Measured) -> Row:
    return value_row("gpu", metric, [100 * value for value in share.values], "%", better="higher")


def top_row(where: Where, found: Climb) -> Row:
    """The last rung beside the first: on a GPU with units for bfloat16 it has to be the faster one."""
    taken = found.image_seconds()
    first, last = list(taken)[0], list(taken)[-1]
    new = where.cuda and torch.cuda.get_device_capability() >= (8, 0)
    target = 1.0 if new else None
    return ratio_row("gpu", f"{last} / {first}", taken[first], taken[last], target=target, better="higher")


@check(13, shows="VGG-11's throughput: data kept on the device, TF32, bfloat16, channels last, one after the other")
def precision_ladder(where: Where):
    found = climbed(where, BY_HAND, "by-hand")
    yield from rows_of(found)
    yield top_row(where, found)


@check(13, 14, shows="the whole ladder: torch.compile, a CUDA graph of it, a larger batch on top", seconds=240)
def whole_ladder(where: Where):
    if where.cuda:
        needs_triton()
    rungs = LADDER if where.cuda else {name: rung for name, rung in LADDER.items() if not rung.graph}
    found = climbed(where, rungs, "ladder")
    yield from rows_of(found)
    yield top_row(where, found)


@check(13, shows="the ladder's last rung alone: what eight times as many images in a step give", seconds=180)
def batch_rung(where: Where):
    if where.cuda:
        needs_triton()
    on_processors = {"batches of 4": TOP, "+ larger batch": replace(TOP, larger=LARGER)}
    found = climbed(where, dict(list(LADDER.items())[-2:]) if where.cuda else on_processors, "larger-batch")
    yield from rows_of(found)
    yield top_row(where, found)


@check(13, 14, shows="what the compiler and a CUDA graph of a whole step gain where batches are small")
def small_batches(where: Where):
    needs_gpu(where)
    needs_triton()
    rungs = {"batches of 32": TOP, "+ CUDA graph": replace(TOP, graph=True), "compiled": replace(TOP, compiled=True)}
    yield from rows_of(climbed(where, rungs, "small-batches", batch=32))  # the compiler alone may lose: no target


def needs_triton() -> None:
    """The compiler's kernels for GPUs are written in it.

    Raises:
        Needs: triton.
    """
    try:
        import triton  # noqa: F401
    except ImportError:
        raise Needs("triton") from None

"""Lesson 3 on a GPU: what it computes and moves in a second, and whether layers keep to the roofline."""

import torch
from torch import nn

from course_utils.lessons.gpu_nodes.ladder import tf32
from course_utils.lessons.hardware.roofline import arithmetic_intensity, roofline_time
from course_utils.vgg import random_images, vgg11
from gpu.registry import Missing, Where, check
from gpu.timing import again
from workshop.bench.rows import Row, ratio_row, value_row

KINDS = {"fp32": (torch.float32, False), "tf32": (torch.float32, True), "bf16": (torch.bfloat16, False)}
"""Name → dtype, and whether TF32 may be used."""


def bandwidth_of(where: Where) -> list[float]:
    """Bytes per second of adding two arrays into a third, as lesson 3 counts them."""
    nbytes = where.pick(1 << 30, 1 << 22)
    left, right, total = torch.ones(3, nbytes // 4, device=where.device)
    return [3 * nbytes / taken for taken in again(where, lambda: torch.add(left, right, out=total), calls=4)]


def matmul_rate_of(where: Where, kind: str) -> list[float]:
    """FLOP per second of a product of two square matrices."""
    side = where.pick(8192, 128)
    dtype, allowed = KINDS[kind]
    left, right, product = torch.randn(3, side, side, device=where.device).to(dtype)
    with tf32(allowed):
        return [2 * side**3 / taken for taken in again(where, lambda: torch.mm(left, right, out=product), calls=2)]


@check(3, shows="how many bytes a second the GPU moves, in its memory and from the processor")
def bandwidth(where: Where):
    yield value_row("gpu", "memory", [one / 1e9 for one in bandwidth_of(where)], "GB/s", better="higher")
    nbytes = where.pick(1 << 28, 1 << 20)
    here = torch.empty(nbytes, dtype=torch.uint8, device=where.device)
    pageable = torch.empty(nbytes, dtype=torch.uint8)
    slow = again(where, lambda: here.copy_(pageable))
    yield value_row("gpu", "from pageable memory", [nbytes / one / 1e9 for one in slow], "GB/s", better="higher")
    if not where.cuda:
        yield Missing("from pinned memory", "a GPU")
        return
    pinned = pageable.pin_memory()
    fast = again(where, lambda: here.copy_(pinned, non_blocking=True))
    yield value_row("gpu", "from pinned memory", [nbytes / one / 1e9 for one in fast], "GB/s", better="higher")
    yield ratio_row("gpu", "pinned / pageable", slow, fast, better="higher")


@check(3, shows="how fast matrices are multiplied in float32, TF32 and bfloat16")
def matmul(where: Where):
    rates = {kind: matmul_rate_of(where, kind) for kind in KINDS}
    for kind, taken in rates.items():
        yield value_row("gpu", kind, [one / 1e12 for one in taken], "TFLOP/s", better="higher")
    new = where.cuda and torch.cuda.get_device_capability() >= (8, 0)
    for kind, target in {"tf32": None, "bf16": 1.2 if new else None}.items():  # some GPUs gain nothing from TF32
        yield ratio_row("gpu", f"{kind} / fp32", rates[kind], rates["fp32"], target=target, better="higher")


@check(3, shows="the convolutions of VGG-11 beside the least time that the roofline allows them")
def roofline(where: Where):
    peak, bytes_a_second = max(matmul_rate_of(where, "fp32")), max(bandwidth_of(where))
    model = vgg11(width=where.pick(1.0, 0.125), norm=False, seed=0).to(where.device)
    x = random_images(where.pick(512, 2))[0].to(where.device)
    with torch.no_grad():
        for name, layer in model.named_children():
            if isinstance(layer, nn.Conv2d):
                flops, nbytes, intensity = arithmetic_intensity(x.shape, layer.weight.shape)
                least = roofline_time([(flops, nbytes)], peak, bytes_a_second)
                taken = again(where, lambda layer=layer, x=x: layer(x), runs=5)
                metric = f"{name}, {intensity:.0f} FLOP/B, measured / least"
                yield ratio_row("gpu", metric, taken, [least] * len(taken))
            x = layer(x)


@check(3, shows="the parts of a training step, by the course's own `time_training`")
def step_parts(where: Where):
    from course_utils.lessons.hardware.step_shares import PARTS, time_training

    model = vgg11(width=where.pick(1.0, 0.125), seed=0)
    batch = where.pick(256, 4)
    timed = time_training(
        model, iterations=where.pick(10, 2), batch=batch, threads=torch.get_num_threads(), device=where.device
    )
    passes = timed.images / batch
    for part in PARTS:
        yield value_row("gpu", part, [1e3 * one.parts[part] / passes for one in timed.iterations], "ms")
    yield value_row("gpu", "backward / forward", timed.ratio().values, "×")
    yield Row("gpu", "the model is on the GPU", float(next(model.parameters()).is_cuda), "", "higher", *_on(where))


def _on(where: Where) -> tuple:
    return float(where.cuda), 0.0, 1

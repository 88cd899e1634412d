"""What the bench of overlap does on the ranks: a network whose computing is emulated by waiting, and its measurements.

Four nodes that share two cores cannot compute while they talk as nodes with a processor each can. Here the layers
wait instead of computing, each for its share of the arithmetic: so every node has, as it were, a processor of its own.
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from course_utils.lessons.hardware.layer_costs import work_and_depth
from course_utils.lessons.overlap.played_hardware import Wait
from course_utils.lessons.overlap.step_times import time_steps
from course_utils.trace.torch.torch_distributed import unrecorded
from course_utils.vgg import random_images, vgg11


def plain_vgg(seed: int, width: float) -> nn.Module:
    """VGG-11 without norms, whose running means DDP would broadcast in every step."""
    return vgg11(width, norm=False, seed=seed)


def waiting_vgg(seed: int, width: float, forward: float, backward: float) -> nn.Module:
    """VGG-11 without norms whose layers wait for their share of `forward` and `backward` seconds.

    What it computes beside waiting is the same network on as few images as it is given.
    """
    layers = vgg11(width, norm=False, seed=seed)
    images, _ = random_images(1, seed=0)
    weighted = {name for name, layer in layers.named_children() if isinstance(layer, (nn.Conv2d, nn.Linear))}
    work = {name: own for name, own, _ in work_and_depth(layers, images) if name in weighted}
    waiting: list[nn.Module] = []
    for name, layer in layers.named_children():
        waiting.append(layer)
        if name in work:
            share = work[name] / sum(work.values())
            waiting.append(Wait(share * forward, share * backward))
    return nn.Sequential(*waiting)


def plain_steps(*arguments: Any, **options: Any) -> dict[str, list[float]]:
    """`time_steps` with torch's own all-reduce: DDP calls that one, and ours must not pay for being recorded."""
    with unrecorded():
        return time_steps(*arguments, **options)


def bucket_seconds(sizes: Sequence[int], runs: int) -> list[float]:
    """On every rank: the seconds of all-reduces of this many bytes, started together; a first round does not count."""
    vectors, taken = [torch.zeros(size // 4) for size in sizes], []
    for _ in range(runs + 1):
        dist.barrier()
        begin = time.perf_counter()
        for work in [dist.all_reduce(vector, async_op=True) for vector in vectors]:
            work.wait()
        taken.append(time.perf_counter() - begin)
    return taken[1:]

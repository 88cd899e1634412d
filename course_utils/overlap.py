"""Data parallelism that hides its messages: buckets of gradients travel while the backward pass is still at work.

Gradients become ready from the last layer to the first. A *bucket* is a few of them, sent as one vector as soon as all
of them are ready, with an all-reduce that does not wait. At the end only what is still on its way has to be waited for:
the *exposed* communication. `DistributedDataParallel` does the same in C++.
Everything here talks through torch.distributed's default group.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

BUCKET_BYTES = 25 * 1024 * 1024
"""The size of a bucket in `DistributedDataParallel`, unless told otherwise."""


def make_buckets(sizes: Sequence[int], bucket_bytes: int) -> list[list[int]]:
    """Group gradients into buckets in the order in which they become ready: the last parameter's first.

    A bucket is closed when the next gradient would make it larger than `bucket_bytes`. A gradient that is larger by
    itself gets a bucket of its own. Nothing moves between ranks: all make the same buckets.

    Args:
        sizes: bytes of each gradient, in the order of `model.parameters()`.
        bucket_bytes: the most that a bucket may hold.

    Returns:
        The buckets in the order in which they are sent; each lists places in `sizes`, falling.

    Source: Li et al. 2020, "PyTorch Distributed", §3.2.2 (gradient bucketing) and §3.2.3 (their order).
    """
    buckets: list[list[int]] = []
    room = 0
    for place in reversed(range(len(sizes))):
        if not buckets or sizes[place] > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= sizes[place]
    return buckets


@dataclass
class Bucket:
    """Some parameters whose gradients travel together.

    Attributes:
        parameters: in the order in which their gradients become ready.
        missing: how many gradients are not ready yet in this backward pass.
        flat: the gradients as one vector, once they travel.
        work: the all-reduce on its way; `wait()` returns when `flat` holds the sum over all ranks.
    """

    parameters: list[nn.Parameter]
    missing: int = 0
    flat: torch.Tensor | None = None
    work: Any = field(default=None, repr=False)


def overlapped_allreduce(parameters: Sequence[nn.Parameter], bucket_bytes: int = BUCKET_BYTES) -> Callable[[], None]:
    """From now on average the gradients during every backward pass; returns the function that ends one.

    Each gradient calls a hook the moment it is ready. When the last one of a bucket has come, the bucket starts its
    all-reduce and the backward pass goes on. Buckets start in their order on every rank, whatever the order in which
    they fill up: otherwise unlike vectors would be added. `finish()`, called after `backward()`, starts what is left
    (a parameter that this batch did not use counts as zeros), waits, and puts the means into `parameter.grad`.

    Args:
        parameters: same shapes and order on all ranks; frozen ones are left out, one that is used twice counts once.
        bucket_bytes: see `make_buckets`.

    Source: Li et al. 2020, "PyTorch Distributed", algorithm 1.
    """
    trained = list(dict.fromkeys(one for one in parameters if one.requires_grad))
    sizes = [one.numel() * one.element_size() for one in trained]
    buckets = [Bucket([trained[place] for place in places]) for places in make_buckets(sizes, bucket_bytes)]
    bucket_of = {one: bucket for bucket in buckets for one in bucket.parameters}
    world_size = dist.get_world_size()

    def begin() -> None:
        for bucket in buckets:
            bucket.missing, bucket.work = len(bucket.parameters), None

    def start(bucket: Bucket) -> None:
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in bucket.parameters]
        bucket.flat = torch.cat([gradient.flatten() for gradient in gradients]).div_(world_size)
        bucket.work = dist.all_reduce(bucket.flat, async_op=True)

    def ready(parameter: nn.Parameter) -> None:
        bucket_of[parameter].missing -= 1
        for bucket in buckets:
            if bucket.missing > 0:
                break
            if bucket.work is None:
                start(bucket)

    def finish() -> None:
        for bucket in buckets:
            if bucket.work is None:
                start(bucket)
        for bucket in buckets:
            bucket.work.wait()
            shapes = [one.shape for one in bucket.parameters]
            pieces = bucket.flat.split([shape.numel() for shape in shapes])
            for parameter, piece, shape in zip(bucket.parameters, pieces, shapes, strict=True):
                parameter.grad = piece.view(shape)
        begin()

    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(ready)
    begin()
    return finish


def accumulate_gradients(
    module: DistributedDataParallel, micro_batches: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> float:
    """The gradient of one large batch, made of small ones that fit: only the last backward pass talks to the others.

    Every micro-batch adds its gradients to `parameter.grad`, weighted by its share of the examples. Until the last one
    `module.no_sync()` keeps the hooks quiet; then each bucket is averaged over the ranks once.

    Args:
        module: its old gradients are gone; the loss is the mean cross-entropy.
        micro_batches: (x, y) pairs, at least one; they may have unlike numbers of examples.

    Returns:
        The loss of this rank's whole batch.

    Source: Li et al. 2020, "PyTorch Distributed", §3.2.4 (gradient accumulation).
    """
    examples = sum(len(x) for x, _ in micro_batches)
    total = 0.0
    for number, (x, y) in enumerate(micro_batches, start=1):
        quiet = module.no_sync() if number < len(micro_batches) else contextlib.nullcontext()
        with quiet:
            loss = cross_entropy(module(x), y) * (len(x) / examples)
            loss.backward()
        total += loss.item()
    return total

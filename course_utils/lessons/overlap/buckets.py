"""Data parallelism that hides its messages: buckets of gradients are sent during the backward pass.

Gradients become ready from the last layer to the first. A *bucket* holds a few of them, which are sent as one vector as
soon as all of them are ready, with an all-reduce that does not wait. When the backward pass ends, a rank has to wait
only for what is still being sent, the *exposed* communication. `DistributedDataParallel` does the same in C++.
All functions use torch.distributed's default group.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.data_parallel.replicas import BUCKET_BYTES, WAYS, Replica


def make_buckets(
    sizes: Sequence[int],
    bucket_bytes: int,
    dtypes: Sequence[Any] | None = None,
) -> list[list[int]]:
    """Group gradients into buckets in the order in which they become ready, the last parameter's
    first.

    A bucket is closed when the next gradient would make it larger than `bucket_bytes`, or when the
    next gradient has a different dtype, because a vector has only one. A gradient that is larger
    than `bucket_bytes` gets a bucket of its own. Nothing is sent; all ranks make the same buckets.

    Args:
        sizes: bytes of each gradient, in the order of `model.parameters()`.
        bucket_bytes: the most that a bucket may hold.
        dtypes: of each gradient; None if all have the same.

    Returns:
        The buckets in the order in which they are sent. Each is a list of indices into `sizes`,
        from the largest to the smallest.

    Source: Li et al. 2020, "PyTorch Distributed", §3.2.2 (bucketing) and §3.2.3 (their order).
    """
    buckets: list[list[int]] = []
    # The backward pass begins at the last layer, so the last parameter's gradient is ready first.
    for index in reversed(range(len(sizes))):
        last = buckets[-1] if buckets else []
        alike = dtypes is None or {dtypes[other] for other in last} <= {dtypes[index]}
        held = sum(sizes[other] for other in last)
        # An empty bucket takes any gradient, even one that is larger than the limit.
        if not (last and alike and held + sizes[index] <= bucket_bytes):
            buckets.append([])
        buckets[-1].append(index)
    return buckets


class Bucket:
    """Some parameters whose gradients are sent together, as one vector.

    Attributes:
        parameters: in the order in which their gradients become ready, all of one dtype.
        missing: how many of their gradients are not ready yet in this backward pass.
        work: the all-reduce under way; None before `start` and after `finish`.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.missing = len(self.parameters)
        self.work: Any = None

    def start(self) -> None:
        """Start the all-reduce and return at once. A parameter without a gradient counts as zeros."""
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in self.parameters
        ]
        self._flat = torch.cat([gradient.detach().flatten() for gradient in gradients]).div_(dist.get_world_size())
        self.work = dist.all_reduce(self._flat, async_op=True)

    def finish(self) -> None:
        """Wait for the all-reduce, write the means into `parameter.grad`, and prepare for the next backward pass."""
        self.work.wait()
        pieces = self._flat.split([parameter.numel() for parameter in self.parameters])
        for parameter, piece in zip(self.parameters, pieces, strict=True):
            parameter.grad = piece.view(parameter.shape)
        self.missing, self.work = len(self.parameters), None


def overlapped_allreduce(
    parameters: Sequence[nn.Parameter],
    bucket_bytes: int = BUCKET_BYTES,
) -> Callable[[], None]:
    """Average the gradients during every backward pass from now on, and return the function
    `finish`.

    Every parameter gets a hook, which is called when its gradient is ready. When a bucket's last
    gradient is ready, the bucket starts its all-reduce, and the backward pass goes on. On every
    rank buckets start in the same order, even if they become complete in a different one;
    otherwise different vectors would be added. `finish()` is called after each `backward()`. It
    starts the buckets that are left (a parameter that this batch did not use counts as zeros),
    waits for all of them, and writes the means into `parameter.grad`.

    Args:
        parameters: same shapes and order on all ranks. Frozen ones are left out, and one that is
            listed twice counts once, at its first position.
        bucket_bytes: see `make_buckets`.

    Source: Li et al. 2020, "PyTorch Distributed", algorithm 1.
    """
    trained = list(dict.fromkeys(parameter for parameter in parameters if parameter.requires_grad))
    sizes = [parameter.numel() * parameter.element_size() for parameter in trained]
    grouped = make_buckets(sizes, bucket_bytes, [parameter.dtype for parameter in trained])
    buckets = [Bucket([trained[index] for index in places]) for places in grouped]
    bucket_of = {parameter: bucket for bucket in buckets for parameter in bucket.parameters}

    def ready(parameter: nn.Parameter) -> None:
        bucket_of[parameter].missing -= 1
        # Start in order, up to the first bucket that is incomplete:
        # so the n-th all-reduce belongs to the same bucket on all ranks.
        for bucket in buckets:
            if bucket.missing > 0:
                break
            if bucket.work is None:
                bucket.start()

    def finish() -> None:
        # Some parameters had no gradient in this pass,
        # but the other ranks are waiting for their buckets all the same.
        for bucket in buckets:
            if bucket.work is None:
                bucket.start()
        for bucket in buckets:
            bucket.finish()

    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(ready)
    return finish


def accumulate_gradients(
    module: DistributedDataParallel, micro_batches: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> float:
    """Compute the gradient of a large batch from micro-batches, and average it over the ranks once.

    Every micro-batch adds its gradients to `parameter.grad`, weighted by its share of the examples.
    All but the last run inside `module.no_sync()`, so that nothing is sent; during the last
    backward pass, every bucket is averaged over the ranks. Nothing else is sent.

    Args:
        module: its old gradients were cleared before the call. The loss is the mean cross-entropy.
        micro_batches: at least one pair (x, y). Each has at least one example, and some may have
            more than others.

    Returns:
        The mean loss over all examples of this rank.

    Source: Li et al. 2020, "PyTorch Distributed", §3.2.4 (gradient accumulation).
    """
    examples = sum(len(x) for x, _ in micro_batches)
    total = 0.0
    for number, (x, y) in enumerate(micro_batches, start=1):
        # DDP's hooks would start all-reduces in every backward pass,
        # but only the last one has the whole sum.
        quiet = module.no_sync() if number < len(micro_batches) else contextlib.nullcontext()
        with quiet:
            # Each loss is a mean over its own examples.
            # Weighted by their shares, the losses add up to the mean over all examples.
            loss = cross_entropy(module(x), y) * (len(x) / examples)
            loss.backward()
        total += loss.item()
    return total


def overlapped(model: nn.Module, bucket_bytes: int = BUCKET_BYTES) -> Replica:
    """Average buckets of gradients during the backward pass, with `overlapped_allreduce`."""
    return Replica(model, overlapped_allreduce(list(model.parameters()), bucket_bytes))


ALL_WAYS: dict[str, Callable[[nn.Module], Replica]] = {**WAYS, "overlapped": overlapped}
"""Lesson 6's methods of keeping replicas equal, and this one."""

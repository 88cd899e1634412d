"""Ways to keep replicas of a model equal, each behind the same two things: what is called, how a pass ends.

From task 2a to task 3 of the CS744 report, and what lies between: through rank 0; an all-reduce for each gradient;
one for all of them; torch's own `DistributedDataParallel`. (Lesson 7 adds buckets behind the backward pass, by hand.)
All give the same weights, step for step, if they begin with the same: `broadcast_parameters(model)` first (DDP does it
by itself).

What a model may hold: a parameter that is used twice counts once; a frozen one is left out; one that a batch did not
use counts as zeros, but for DDP, which has to be told. Ranks with different numbers of examples weight their losses, as
`training.train_parallel(keep_last=True)` does. `train_replicas` is `train_parallel` with any of these ways.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.gradients import (
    average_gradients,
    broadcast_parameters,
    gather_scatter_gradients,
)
from course_utils.lessons.data_parallel.training import Data, History, digits_mlp, train_parallel

BUCKET_BYTES = 25 * 1024 * 1024
"""The size of a bucket in `DistributedDataParallel`, unless told otherwise."""


@dataclass(frozen=True)
class Replica:
    """One rank's copy of the model.

    Attributes:
        module: what the forward pass calls.
        finish: called after `backward()`; when it returns, every `parameter.grad` is the mean over all ranks.
    """

    module: nn.Module
    finish: Callable[[], None]


def unsynchronised(model: nn.Module) -> Replica:
    """Every rank trains by itself: no messages, and replicas that drift apart. Here to be subtracted."""
    return Replica(model, lambda: None)


def through_rank_0(model: nn.Module) -> Replica:
    """Task 2a: rank 0 gathers every gradient, and scatters the mean."""
    return Replica(model, lambda: gather_scatter_gradients(model))


def all_reduce_each(model: nn.Module) -> Replica:
    """Task 2b: after the backward pass one all-reduce for each gradient, one after the other."""
    return Replica(model, lambda: average_gradients(model))


def all_reduce_flat(model: nn.Module) -> Replica:
    """After the backward pass one all-reduce for all gradients, as one vector: the latency is paid once."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def finish() -> None:
        if not trained:
            return
        gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in trained]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for parameter, piece in zip(trained, flat.split([parameter.numel() for parameter in trained]), strict=True):
            parameter.grad = piece.view_as(parameter).to(parameter.dtype)  # the vector has the widest one

    return Replica(model, finish)


def torch_ddp(model: nn.Module, bucket_bytes: int = BUCKET_BYTES, unused: bool = False) -> Replica:
    """Task 3: `DistributedDataParallel`, whose backward pass returns with the means; at its end it is only checked.

    Args:
        unused: whether some batches use only part of the parameters; torch then searches the graph in each pass.

    Raises:
        CourseError: from `finish`, where a batch used only part of them and `unused` is False: torch has not averaged.
    """
    size = bucket_bytes / 2**20
    module = DistributedDataParallel(model, bucket_cap_mb=size, find_unused_parameters=unused)
    waited_for = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    ready: set[nn.Parameter] = set()
    for parameter in waited_for.values():
        parameter.register_post_accumulate_grad_hook(ready.add)

    def finish() -> None:
        left = [name for name, parameter in waited_for.items() if parameter not in ready]
        ready.clear()
        if left and not unused:
            raise CourseError(
                f"rank {dist.get_rank()}: this batch did not use {left[0]}, and DDP still waits for its gradient. "
                "Say torch_ddp(model, unused=True), or freeze what is not trained."
            )

    return Replica(module, finish)


WAYS: dict[str, Callable[[nn.Module], Replica]] = {
    "gather-scatter": through_rank_0,
    "all-reduce, each": all_reduce_each,
    "all-reduce, flat": all_reduce_flat,
    "DDP": torch_ddp,
}
"""Each way by the name that pages and pictures use. Lesson 7 adds one, `overlap.buckets.overlapped`."""


class _Replicated(nn.Module):
    """A model that `train_parallel` can train although it is a replica which computes its forward pass."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.replica = unsynchronised(model)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Each rank recognises the test images by itself: DDP's forward pass might wait for the other ranks.
        return self.replica.module(x) if self.training else self.model(x)


def train_replicas(
    data: Data,
    replicate: Callable[[nn.Module], Replica],
    build: Callable[[int], nn.Module] = digits_mlp,
    *,
    broadcast: Callable[[nn.Module], None] = broadcast_parameters,
    **options,
) -> History:
    """Train as `train_parallel` does, on every rank, where `replicate` keeps the replicas equal.

    Args:
        replicate: one of `WAYS`, or a function like them; it gets the model after the broadcast.
        options: of `train_parallel`.
    """

    def begin(model: _Replicated) -> None:
        broadcast(model.model)
        model.replica = replicate(model.model)

    def finish(model: _Replicated) -> None:
        model.replica.finish()

    return train_parallel(data, lambda seed: _Replicated(build(seed)), finish, broadcast=begin, **options)

"""Data parallelism by hand: P replicas of a model, one global batch, one set of weights.

Each rank computes the gradient of its own share of the batch. If all start from the same weights and take
the mean of all gradients before they step, the replicas stay equal, and equal to one process with the whole batch.
Everything here talks through torch.distributed's default group.
"""

import math

import torch
import torch.distributed as dist
from torch import nn

from course_utils.differentiable import all_reduce_sum


def shard_indices(n: int, rank: int, world_size: int, epoch: int = 0, seed: int = 0) -> torch.Tensor:
    """The examples that `rank` works on in `epoch`. Nothing moves between ranks: all draw the same order.

    The order of all n examples is `torch.randperm(n, generator=g)`, where g is seeded with `seed + epoch`.
    It is filled up from its own beginning until its length divides by `world_size`: ranks with unlike numbers
    of steps would wait for each other for ever. Rank r takes the entries r, r + world_size, r + 2·world_size, …:
    so the k-th batches of all ranks together are the k-th batch of a single process.

    Returns:
        ⌈n / world_size⌉ indices between 0 and n − 1, int64.

    Source: `torch.utils.data.DistributedSampler`, which deals out examples in the same way.
    """
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator)
    per_rank = math.ceil(n / world_size)
    filled_up = order.repeat(world_size)[: per_rank * world_size]
    return filled_up[rank::world_size]


def broadcast_parameters(model: nn.Module) -> None:
    """Give every rank rank 0's model, in place: one broadcast from rank 0 for each tensor of the model.

    Buffers count as well as parameters: batch norm's running mean is part of what a replica is.

    Args:
        model: same architecture on all ranks; read on rank 0, overwritten elsewhere.

    Source: Li et al. 2020, "PyTorch Distributed", §2.2 (DDP does this when it is constructed).
    """
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            dist.broadcast(tensor, src=0)


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all ranks, in place, with one all-reduce per parameter.

    Each rank contributes its gradients once; no rank collects those of the others.
    Frozen parameters (`requires_grad=False`) are left out. A rank that has no gradient for a parameter
    (`grad is None`) takes part with zeros: the other ranks are waiting for it.

    Args:
        model: same architecture on all ranks, after `backward()`.

    Source: task 2b of the CS744 report; van Leeuwen's slides, "Data parallel synchronous SGD".
    """
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def gather_scatter_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all ranks, the long way: everything passes through rank 0.

    Rank 0 receives P − 1 gradients and sends P − 1 means; the other ranks send one and receive one.

    Args:
        model: same architecture on all ranks, after `backward()`.

    Source: task 2a of the CS744 report.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradient = parameter.grad
        gathered = [torch.empty_like(gradient) for _ in range(world_size)] if rank == 0 else None
        dist.gather(gradient, gathered, dst=0)
        means = [torch.stack(gathered).mean(dim=0)] * world_size if rank == 0 else None
        dist.scatter(gradient, means, src=0)


def scaled_learning_rate(
    base: float, step: int, world_size: int, rule: str = "linear", warm_up_steps: int = 0
) -> float:
    """The learning rate of `step` (counted from 0) when P ranks make the batch P times as large.

    "linear" multiplies `base` by P, "sqrt" by √P. During the first `warm_up_steps` steps the rate climbs in a
    straight line: `base` at step 0, the scaled rate from step `warm_up_steps` on.

    Args:
        base: the rate that suits one rank.

    Raises:
        ValueError: `rule` is neither "linear" nor "sqrt".

    Source: Goyal et al. 2017, "Accurate, Large Minibatch SGD", §2.1 and §2.2; Krizhevsky 2014 for √P.
    """
    factors = {"linear": world_size, "sqrt": math.sqrt(world_size)}
    if rule not in factors:
        raise ValueError(f'rule is "linear" or "sqrt", not {rule!r}')
    scaled = base * factors[rule]
    if step < warm_up_steps:
        return base + (scaled - base) * step / warm_up_steps
    return scaled


def sync_batch_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise each feature of `x` with the mean and variance of *all* ranks' examples.

    Forward: one all-reduce of 2·features + 1 numbers (sums, sums of squares, how many examples). Backward: one
    all-reduce of as many, by autograd. So ranks may have unlike numbers of examples, even none.

    Args:
        x: (examples, features), this rank's share; features equal on all ranks.
        weight, bias: (features,), equal on all ranks.

    Returns:
        (y, mean, variance): y = (x − mean) / √(variance + eps) · weight + bias, shape and dtype of `x`;
        mean and variance: (features,), over the examples of all ranks, variance divided by their number N.

    Source: Ioffe and Szegedy 2015, "Batch Normalization", algorithm 1; `torch.nn.SyncBatchNorm`.
    """
    features = x.shape[1]
    rows = x.double()  # a square loses half of its digits in the subtraction below
    count = rows.new_tensor([len(x)])
    totals = all_reduce_sum(torch.cat([rows.sum(dim=0), rows.square().sum(dim=0), count]))
    n = totals[-1]
    mean = totals[:features] / n
    variance = totals[features:-1] / n - mean.square()
    y = (rows - mean) / torch.sqrt(variance + eps) * weight + bias
    return y.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)


class SyncBatchNorm(nn.BatchNorm1d):
    """`nn.BatchNorm1d` whose statistics in training are those of the whole global batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(examples, features) in and out; one collective in training, none in evaluation.

        `running_var` gathers variances divided by N, where `nn.BatchNorm1d` divides by N − 1.
        """
        if not self.training:
            return super().forward(x)
        y, mean, variance = sync_batch_norm(x, self.weight, self.bias, self.eps)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance, self.momentum)
        return y

"""Data parallelism by hand: P replicas of a model, one global batch, one set of weights.

Each rank computes the gradient of its own share of the batch. If all start from the same weights and take
the mean of all gradients before they step, the replicas stay equal, and equal to one process with the whole batch.
Everything here talks through torch.distributed's default group.
"""

import math

import torch
import torch.distributed as dist
from torch import nn


def broadcast_parameters(model: nn.Module) -> None:
    """Copy rank 0's model to every rank, in place, with one broadcast for each tensor of the model.

    A model consists of its parameters and its buffers. Batch norm, for example, keeps its running
    mean in a buffer. A tensor that belongs to two layers is sent once, and nothing else is sent.

    Args:
        model: the same architecture on all ranks. It is read on rank 0 and overwritten on the
            others.

    Source: Li et al. 2020, "PyTorch Distributed", §2.2 (DDP does this when it is constructed).
    """
    with torch.no_grad():
        # All ranks go through the tensors in the same order:
        # so the n-th broadcast is the same tensor's everywhere.
        for tensor in [*model.parameters(), *model.buffers()]:
            dist.broadcast(tensor, src=0)


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all ranks, in place, with one all-reduce per
    parameter.

    Each rank contributes its gradients once, and no rank collects those of the others. The mean
    is written into the tensor that was the gradient. Frozen parameters (`requires_grad=False`) are
    left out. If a rank has no gradient for a parameter (`grad is None`), it takes part with zeros,
    because the other ranks are waiting for it.

    Args:
        model: the same architecture on all ranks, after `backward()`.

    Source: task 2b of the CS744 report; SURF's slides, "Data parallel synchronous SGD".
    """
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        # A collective waits for all ranks. Zeros don't change the sum, but staying away would stop
        # the others.
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def gather_scatter_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all ranks, which rank 0 computes: everything passes through its link.

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

    The scaled rate is P · base by the rule "linear", and √P · base by the rule "sqrt". During the
    first `warm_up_steps` steps the rate rises in a straight line, from `base` at step 0 to the
    scaled rate at step `warm_up_steps`. From then on it is the scaled rate.

    Args:
        base: the rate that suits one rank.

    Raises:
        ValueError: `rule` is neither "linear" nor "sqrt".

    Source: Goyal et al. 2017, "Accurate, Large Minibatch SGD", §2.1 and §2.2, for the linear rule
    and the warm-up; Krizhevsky 2014, "One weird trick", for √P. For Adam, Malladi et al. 2022
    derive √P if the gradients are mostly noise and Adam's other settings are scaled, too.
    """
    factors = {"linear": world_size, "sqrt": math.sqrt(world_size)}
    if rule not in factors:
        raise ValueError(f'rule is "linear" or "sqrt", not {rule!r}')
    scaled = base * factors[rule]
    # Long steps do harm while the gradient still changes quickly, so the rate rises slowly.
    if step < warm_up_steps:
        return base + (scaled - base) * step / warm_up_steps
    return scaled

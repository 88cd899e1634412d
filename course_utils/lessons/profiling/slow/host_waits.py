"""Slow program 2: every step waits for numbers that only the log needs.

On a GPU, `.item()` makes the processor wait until the number is computed. On a CPU it is there already, but a mean over
all ranks needs an all-reduce, which makes a rank wait in the same way until the last rank has joined in.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd

BATCH = 16


def own_network(device: str = "cpu") -> nn.Linear:
    """Return a network for the digits, a different one on every rank."""
    torch.manual_seed(dist.get_rank())
    return nn.Linear(64, 10).to(device)


def right_share(found: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the share of right answers in a batch, as a tensor with one number."""
    return (found.argmax(dim=1) == y).float().mean()


def slow_2(x: torch.Tensor, y: torch.Tensor, steps: int = 60, device: str = "cpu") -> list[float]:
    """Train a network on every rank, and log three means over all ranks at each step.

    They are the loss, the share of right answers, and the length of the gradient. Each step sums
    each of them over the ranks of the default group and waits for it, which makes three
    all-reduces of one number.

    Args:
        x: inputs of shape (examples, 64), float32; the same on all ranks.
        y: their classes, int64 of shape (examples,).

    Returns:
        The three means of each step, one after the other, the same list on all ranks.
    """
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    log = []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        found = model(x[batch])
        loss = cross_entropy(found, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for number in (loss.detach(), right_share(found, y[batch]), model.weight.grad.norm()):
            mean = number / dist.get_world_size()
            dist.all_reduce(mean)
            log.append(mean.item())
    return log


def speed_up_2(
    x: torch.Tensor,
    y: torch.Tensor,
    steps: int = 60,
    device: str = "cpu",
) -> list[float]:
    """Train as `slow_2` does, with the same log on all ranks, but without a message before the last
    step is done.

    Nothing needs the numbers before the end, where all `3 * steps` can travel as one vector in a
    single all-reduce. (`zero_grad` drops the old gradients, so each step has gradients of its own.)

    Args:
        x: inputs of shape (examples, 64), float32; the same on all ranks.
        y: their classes, int64 of shape (examples,).

    Returns:
        The three means of each step, one after the other, the same list on all ranks.
    """
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    numbers = []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        found = model(x[batch])
        loss = cross_entropy(found, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # These stay tensors, so nothing has to wait for them now.
        numbers += [loss.detach(), right_share(found, y[batch]), model.weight.grad.norm()]
    # One all-reduce at the end replaces three in every step.
    means = torch.stack(numbers) / dist.get_world_size()
    dist.all_reduce(means)
    return means.tolist()

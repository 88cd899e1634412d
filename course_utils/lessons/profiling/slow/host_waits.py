"""Slow program 2: every step waits for numbers that only the log needs.

`.item()` makes the processor wait until the GPU has computed the number. A CPU has nothing to wait for; but a number
of all ranks, an all-reduce, has to be waited for in the same way: until the last rank has come.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd

BATCH = 16


def own_network(device: str = "cpu") -> nn.Linear:
    """A network for the digits, another one on every rank."""
    torch.manual_seed(dist.get_rank())
    return nn.Linear(64, 10).to(device)


def right_share(found: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The share of right answers in a batch, a number."""
    return (found.argmax(dim=1) == y).float().mean()


def slow_2(x: torch.Tensor, y: torch.Tensor, steps: int = 60, device: str = "cpu") -> list[float]:
    """Every rank trains a network of its own; the log holds three means over all ranks at each step.

    These are loss, share of right answers and length of the gradient. Each step sums each of them
    over the ranks of the default group, and waits for it: three all-reduces of one number.

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
    """Train as `slow_2` does, with the same log on all ranks, and wait for the others once.

    All numbers travel at the end as one vector of `3 * steps` numbers, in one all-reduce.

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
        # Tensors, not numbers: nobody waits for them now.
        numbers += [loss.detach(), right_share(found, y[batch]), model.weight.grad.norm()]
    # One message at the end in place of three in every step.
    means = torch.stack(numbers) / dist.get_world_size()
    dist.all_reduce(means)
    return means.tolist()

"""Slow program 2: every step waits for a number that only the log needs.

`.item()` makes the processor wait until the GPU has computed the number. A CPU has nothing to wait for; but a number
of all ranks, an all-reduce, has to be waited for in the same way: until the last rank has come.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.training import Sgd

TARGET = 1.5
"""How many times as fast it can be made, at least."""
STEPS, BATCH = 60, 16


def own_network(device: str = "cpu") -> nn.Module:
    """A network for the digits, another one on every rank."""
    torch.manual_seed(dist.get_rank())
    return nn.Linear(64, 10).to(device)


def slow_2(x: torch.Tensor, y: torch.Tensor, steps: int = STEPS, device: str = "cpu") -> list[float]:
    """Every rank trains a network of its own, and the log holds the mean loss of all ranks at each step.

    Each step sends one number to all ranks of the default group, and waits for it.

    Args:
        x: inputs of shape (examples, 64), float32; the same on all ranks.
        y: their classes, int64 of shape (examples,).

    Returns:
        The mean loss before each step, the same list on all ranks.
    """
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    log = []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        loss = cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        log.append(mean.item())
    return log


def speed_up_2(x: torch.Tensor, y: torch.Tensor, steps: int = STEPS, device: str = "cpu") -> list[float]:
    """Train as `slow_2` does, with the same log on all ranks, and wait for the others once.

    All losses travel at the end as one vector of `steps` numbers, in one all-reduce.

    Args:
        x: inputs of shape (examples, 64), float32; the same on all ranks.
        y: their classes, int64 of shape (examples,).

    Returns:
        The mean loss before each step, the same list on all ranks.
    """
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    losses = []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        loss = cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    means = torch.stack(losses) / dist.get_world_size()
    dist.all_reduce(means)
    return means.tolist()

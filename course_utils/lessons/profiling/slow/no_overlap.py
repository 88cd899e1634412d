"""Slow program 5: the link is idle while the ranks compute, and the ranks wait while it works."""

import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.overlap import played_hardware

LAYERS, WIDTH = 8, 128
SECONDS = 0.01
"""The time for the backward pass of a layer, and for its gradient on the link."""


def waiting_network(device: str = "cpu") -> nn.Sequential:
    """Return layers whose backward pass waits, as if each rank had a processor of its own."""
    torch.manual_seed(0)
    layers = [(nn.Linear(WIDTH, WIDTH, bias=False), played_hardware.Wait(0.0, SECONDS)) for _ in range(LAYERS)]
    for linear, _ in layers:
        linear.weight.data.mul_(0.1).add_(torch.eye(WIDTH))  # what comes out is about as large as what goes in
    return nn.Sequential(*itertools.chain(*layers)).to(device)


def own_link() -> played_hardware.PlayedLink:
    """Return a link on which a gradient takes as long as the backward pass of its layer."""
    return played_hardware.PlayedLink(rate=4 * WIDTH * WIDTH / SECONDS)


def slow_5(x: torch.Tensor, y: torch.Tensor, steps: int = 2, device: str = "cpu") -> list[float]:
    """Train on all ranks, each with its own part of the batch, and sum every layer's gradient over them in each step.

    Args:
        x: this rank's inputs of shape (examples, 128), float32.
        y: what should come out, of the same shape.

    Returns:
        This rank's loss before each step.
    """
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for weight in model.parameters():
            link.all_reduce(weight.grad).wait()
            weight.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses


def speed_up_5(
    x: torch.Tensor,
    y: torch.Tensor,
    steps: int = 2,
    device: str = "cpu",
) -> list[float]:
    """Train as `slow_5` does, with the same losses, but send gradients while others are computed.

    Each step sums every layer's gradient over the ranks.

    Args:
        x: this rank's inputs of shape (examples, 128), float32.
        y: what should come out, of the same shape.

    Returns:
        This rank's loss before each step.

    Source: Li et al. 2020, "PyTorch Distributed", §3.2.3.
    """
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    under_way = []
    # A gradient leaves when it is ready, while the backward pass goes on to the layer before.
    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(lambda own: under_way.append(link.all_reduce(own.grad)))
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        # Only here does the optimizer need the sums.
        for work in under_way:
            work.wait()
        under_way.clear()
        for weight in model.parameters():
            weight.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses

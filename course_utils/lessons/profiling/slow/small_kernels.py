"""Slow program 3: many operations that do so little that calling one takes longer than its arithmetic."""

import itertools

import torch
from torch import nn
from torch.nn.functional import cross_entropy

ADAM_RATE, KEEP_MEAN, KEEP_SQUARE, TINY, KEEP_AVERAGE = 0.01, 0.9, 0.999, 1e-8, 0.9


def deep_network(device: str = "cpu") -> nn.Sequential:
    """Return many narrow layers for the digits: 82 tensors of weights, none of more than 1,024 numbers."""
    torch.manual_seed(0)
    sizes = [64, *[16] * 40, 10]
    layers = [(nn.Linear(a, b), nn.Tanh()) for a, b in itertools.pairwise(sizes)]
    return nn.Sequential(*itertools.chain(*layers)).to(device)


def slow_3(x: torch.Tensor, y: torch.Tensor, steps: int = 12, device: str = "cpu") -> list[float]:
    """Train with Adam, and keep a running average of the weights.

    Args:
        x: one batch of inputs of shape (examples, 64), float32.
        y: their classes, int64 of shape (examples,).

    Returns:
        The loss before each step, and at the end the loss with the averaged weights.
    """
    model = deep_network(device)
    x, y = x.to(device), y.to(device)
    weights = list(model.parameters())
    means = [torch.zeros_like(weight) for weight in weights]
    squares = [torch.zeros_like(weight) for weight in weights]
    averages = [weight.detach().clone() for weight in weights]
    losses = []
    for step in range(1, steps + 1):
        loss = cross_entropy(model(x), y)
        gradients = torch.autograd.grad(loss, weights)
        losses.append(loss.detach())
        with torch.no_grad():
            for i in range(len(weights)):
                means[i] = KEEP_MEAN * means[i] + (1 - KEEP_MEAN) * gradients[i]
                squares[i] = KEEP_SQUARE * squares[i] + (1 - KEEP_SQUARE) * gradients[i] ** 2
                mean = means[i] / (1 - KEEP_MEAN**step)
                square = squares[i] / (1 - KEEP_SQUARE**step)
                weights[i] -= ADAM_RATE * mean / (square.sqrt() + TINY)
                averages[i] = KEEP_AVERAGE * averages[i] + (1 - KEEP_AVERAGE) * weights[i]
    with torch.no_grad():
        for weight, average in zip(weights, averages, strict=True):
            weight.copy_(average)
        losses.append(cross_entropy(model(x), y))
    return torch.stack(losses).tolist()


def speed_up_3(
    x: torch.Tensor,
    y: torch.Tensor,
    steps: int = 12,
    device: str = "cpu",
) -> list[float]:
    """Train as `slow_3` does, with the same losses, and update all weights at once, as one vector.

    Args:
        x: one batch of inputs of shape (examples, 64), float32.
        y: their classes, int64 of shape (examples,).

    Returns:
        The loss before each step, and at the end the loss with the averaged weights.
    """
    model = deep_network(device)
    x, y = x.to(device), y.to(device)
    weights = list(model.parameters())
    flat = nn.utils.parameters_to_vector(weights).detach()
    nn.utils.vector_to_parameters(flat, weights)  # from now on each is a piece of `flat`
    mean, square = torch.zeros_like(flat), torch.zeros_like(flat)
    average = flat.clone()
    losses = []
    for step in range(1, steps + 1):
        loss = cross_entropy(model(x), y)
        gradients = torch.autograd.grad(loss, weights)
        losses.append(loss.detach())
        # Adam does the same to every weight:
        # one vector takes a few operations, a list of weights a few for each.
        gradient = torch.cat([gradient.flatten() for gradient in gradients])
        mean = KEEP_MEAN * mean + (1 - KEEP_MEAN) * gradient
        square = KEEP_SQUARE * square + (1 - KEEP_SQUARE) * gradient**2
        root = (square / (1 - KEEP_SQUARE**step)).sqrt()
        flat -= ADAM_RATE * mean / (1 - KEEP_MEAN**step) / (root + TINY)
        average = KEEP_AVERAGE * average + (1 - KEEP_AVERAGE) * flat
    nn.utils.vector_to_parameters(average, weights)
    with torch.no_grad():
        losses.append(cross_entropy(model(x), y))
    return torch.stack(losses).tolist()

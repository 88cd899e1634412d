"""Refused with: How many operations does it take to change all weights?

Fewer lines, and as many operations.
"""

import torch
from torch.nn.functional import cross_entropy

from course_utils.lessons.profiling.slow.small_kernels import (
    ADAM_RATE,
    KEEP_AVERAGE,
    KEEP_MEAN,
    KEEP_SQUARE,
    TINY,
    deep_network,
)


def speed_up_3(x, y, steps=12, device="cpu"):
    model = deep_network(device)
    x, y = x.to(device), y.to(device)
    weights = list(model.parameters())
    means = [torch.zeros_like(one) for one in weights]
    squares = [torch.zeros_like(one) for one in weights]
    averages = [one.detach().clone() for one in weights]
    losses = []
    for step in range(1, steps + 1):
        loss = cross_entropy(model(x), y)
        gradients = torch.autograd.grad(loss, weights)
        losses.append(loss.detach())
        with torch.no_grad():
            for i in range(len(weights)):
                means[i] = torch.add(KEEP_MEAN * means[i], gradients[i], alpha=1 - KEEP_MEAN)
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

"""Refused with: Which part of Adam's formula is not as it was?

The corrections divide by 1 - 0.9^(step + 1) in this count.
"""

import torch
from torch import nn
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
    flat = nn.utils.parameters_to_vector(weights).detach()
    nn.utils.vector_to_parameters(flat, weights)  # from now on each is a piece of `flat`
    mean, square = torch.zeros_like(flat), torch.zeros_like(flat)
    average = flat.clone()
    losses = []
    for step in range(steps):
        loss = cross_entropy(model(x), y)
        gradients = torch.autograd.grad(loss, weights)
        losses.append(loss.detach())
        gradient = torch.cat([one.flatten() for one in gradients])
        mean = KEEP_MEAN * mean + (1 - KEEP_MEAN) * gradient
        square = KEEP_SQUARE * square + (1 - KEEP_SQUARE) * gradient**2
        root = (square / (1 - KEEP_SQUARE ** (step + 2))).sqrt()
        flat -= ADAM_RATE * mean / (1 - KEEP_MEAN ** (step + 2)) / (root + TINY)
        average = KEEP_AVERAGE * average + (1 - KEEP_AVERAGE) * flat
    nn.utils.vector_to_parameters(average, weights)
    with torch.no_grad():
        losses.append(cross_entropy(model(x), y))
    return torch.stack(losses).tolist()

"""Refused with: Which part of Adam's formula is not as it was?"""

import torch
from torch.nn.functional import cross_entropy

from course_utils.lessons.profiling.slow.small_kernels import KEEP_AVERAGE, deep_network


def speed_up_3(x, y, steps=12, device="cpu"):
    model = deep_network(device)
    adam = torch.optim.Adam(model.parameters(), fused=True)
    averages = [one.detach().clone() for one in model.parameters()]
    losses = []
    for _ in range(steps):
        loss = cross_entropy(model(x), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        with torch.no_grad():
            torch._foreach_lerp_(averages, list(model.parameters()), 1 - KEEP_AVERAGE)
    with torch.no_grad():
        for weight, average in zip(model.parameters(), averages, strict=True):
            weight.copy_(average)
        losses.append(cross_entropy(model(x), y).item())
    return losses

"""DDP's own flag."""

import torch
from torch import nn


def accumulate_gradients(module, micro_batches):
    weights = torch.tensor([len(x) for x, _ in micro_batches], dtype=torch.float64)
    weights /= weights.sum()
    total = 0.0
    for number, (x, y) in enumerate(micro_batches):
        module.require_backward_grad_sync = number == len(micro_batches) - 1
        loss = nn.CrossEntropyLoss()(module(x), y)
        loss.backward(gradient=weights[number].to(loss.dtype))
        total += weights[number].item() * loss.item()
    return total

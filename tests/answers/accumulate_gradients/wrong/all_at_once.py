"""Refused with: Is there memory for the whole batch at once?"""

import torch
from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    x, y = (torch.cat(parts) for parts in zip(*micro_batches, strict=True))
    loss = cross_entropy(module(x), y)
    loss.backward()
    return loss.item()

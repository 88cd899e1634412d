"""Refused with: Does autograd have to know of this?"""

import torch
import torch.distributed as dist


def broadcast_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        copy = tensor.detach().clone()
        dist.broadcast(copy, src=0)
        tensor.copy_(copy)

"""Refused with: Do the model's own tensors hold what arrived?"""

import torch.distributed as dist


def broadcast_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        copy = tensor.detach().clone()
        dist.broadcast(copy, src=0)
        tensor = copy

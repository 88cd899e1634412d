"""Refused with: Is a parameter that is not trained part of the model?"""

import torch.distributed as dist


def broadcast_parameters(model):
    for parameter in model.parameters():
        if parameter.requires_grad:
            dist.broadcast(parameter.detach(), src=0)
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)

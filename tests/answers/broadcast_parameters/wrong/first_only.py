"""Refused with: Does every tensor of the model travel?"""

import torch.distributed as dist


def broadcast_parameters(model):
    first = next(model.parameters())
    dist.broadcast(first.detach(), src=0)

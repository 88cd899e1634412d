"""Refused with: Is every gradient averaged?"""

import torch.distributed as dist


def average_gradients(model):
    first = next(model.parameters())
    dist.all_reduce(first.grad)
    first.grad /= dist.get_world_size()

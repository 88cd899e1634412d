"""Refused with: What do the other ranks know of this rank's gradient?"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        parameter.grad = parameter.grad / dist.get_world_size()

"""Refused with: Do all ranks have it in the end?"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        mean = parameter.grad.clone()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            parameter.grad = mean / dist.get_world_size()

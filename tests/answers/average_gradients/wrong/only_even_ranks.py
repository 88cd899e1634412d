"""Refused with: Does every rank make the same calls?"""

import torch.distributed as dist


def average_gradients(model):
    if dist.get_rank() % 2 == 0:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

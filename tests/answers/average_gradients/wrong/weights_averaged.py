"""Refused with: Who changes the weights: this function, or the optimizer?"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
        parameter.data -= 0.1 * parameter.grad

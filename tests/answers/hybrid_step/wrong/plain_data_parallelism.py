"""Refused with: Which rank has the fully connected layers?"""

import torch.distributed as dist


def hybrid_step(convolutions, dense, x, y, loss):
    total = loss(dense(convolutions(x)), y)
    total.backward()
    for parameter in (*convolutions.parameters(), *dense.parameters()):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    return total.item()

"""Refused with: May rank 0's own weights change?"""

import torch.distributed as dist


def broadcast_parameters(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data /= dist.get_world_size()
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)

"""Parameters, then buffers."""

import torch.distributed as dist


def broadcast_parameters(model):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    for buffer in model.buffers():
        dist.broadcast(buffer, 0)

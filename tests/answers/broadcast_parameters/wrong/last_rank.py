"""Refused with: Whose weights are to be everybody's?"""

import torch.distributed as dist


def broadcast_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=dist.get_world_size() - 1)

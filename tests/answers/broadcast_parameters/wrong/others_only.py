"""Refused with: Does every rank make the same calls?"""

import torch.distributed as dist


def broadcast_parameters(model):
    if dist.get_rank() != 0:
        for tensor in [*model.parameters(), *model.buffers()]:
            dist.broadcast(tensor.detach(), src=0)

"""All broadcasts started, then all waited for."""

import itertools

import torch
import torch.distributed as dist


@torch.no_grad()
def broadcast_parameters(model):
    works = [
        dist.broadcast(tensor, src=0, async_op=True) for tensor in itertools.chain(model.parameters(), model.buffers())
    ]
    for work in works:
        work.wait()

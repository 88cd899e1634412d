"""Refused with: Do all ranks make the same calls?"""

import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    for rank in range(dist.get_rank() + 1):
        cross_entropy(model(images[:16]), labels[:16]).backward()
        dist.all_reduce(next(model.parameters()).grad)
    return model

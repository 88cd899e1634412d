"""Refused with: Do all ranks begin with the same weights, and are they averaged before they are far apart?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    for values in model.state_dict().values():
        if values.is_floating_point():
            dist.all_reduce(values)
            values /= dist.get_world_size()
    return model

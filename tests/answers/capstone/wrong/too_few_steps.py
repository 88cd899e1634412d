"""Refused with: Are there enough steps, and is the learning rate right at the end?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch in torch.randperm(len(images)).split(60):
        optimizer.zero_grad()
        cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
        for values in model.state_dict().values():
            if values.is_floating_point():
                dist.all_reduce(values)
                values /= dist.get_world_size()
    return model

"""Refused with: How often do the nodes talk, and do they say more than they need to?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    for _ in range(3):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            flat = torch.cat([one.grad.flatten() for one in parameters])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
            for one, mean in zip(parameters, flat.split([one.numel() for one in parameters]), strict=True):
                one.grad = mean.view_as(one)
            optimizer.step()
    return model

"""Refused with: How often do the nodes talk, and do they say more than they need to?"""

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def capstone(model, images, labels):
    module = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(3):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(module(images[batch]), labels[batch]).backward()
            optimizer.step()
    return module

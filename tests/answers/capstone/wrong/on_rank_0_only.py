"""Refused with: Whose images does it never see, or is another network trained?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if dist.get_rank() == 0:
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    return model

"""Refused with: Which part takes the time: computing, or the links?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(8):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            if dist.get_rank() == 0:
                model.eval()
                with torch.no_grad():
                    scores = model(images)
                model.train()
        for values in model.state_dict().values():
            if values.is_floating_point():
                dist.all_reduce(values)
                values /= dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"{(scores.argmax(dim=1) == labels).sum()} of {len(labels)} found")
    return model

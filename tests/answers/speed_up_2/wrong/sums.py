"""Refused with: Was the sum divided by the number of ranks?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.host_waits import BATCH, own_network, right_share


def speed_up_2(x, y, steps=60, device="cpu"):
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    numbers = []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        found = model(x[batch])
        loss = cross_entropy(found, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numbers += [loss.detach(), right_share(found, y[batch]), model.weight.grad.norm()]
    means = torch.stack(numbers)
    dist.all_reduce(means)
    return means.tolist()

"""Refused with: Is this what the tensor held then, or what it holds now?"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.host_waits import BATCH, own_network, right_share


def speed_up_2(x, y, steps=60, device="cpu"):
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    numbers, gradients = [], []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        found = model(x[batch])
        loss = cross_entropy(found, y[batch])
        model.weight.grad = None if model.weight.grad is None else model.weight.grad.zero_()
        loss.backward()
        optimizer.step()
        numbers += [loss.detach(), right_share(found, y[batch])]
        gradients.append(model.weight.grad)
    for step in range(steps):
        numbers.insert(3 * step + 2, gradients[step].norm())
    means = torch.stack(numbers) / dist.get_world_size()
    dist.all_reduce(means)
    return means.tolist()

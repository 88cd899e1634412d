"""Three lists, put side by side at the end."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.host_waits import BATCH, own_network, right_share


def speed_up_2(x, y, steps=60, device="cpu"):
    model = own_network(device)
    optimizer = Sgd(model.parameters(), rate=0.1)
    x, y = x.to(device), y.to(device)
    losses, shares, norms = [], [], []
    for step in range(steps):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH, device=device) % len(x)
        found = model(x[batch])
        loss = cross_entropy(found, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        shares.append(right_share(found, y[batch]))
        norms.append(model.weight.grad.norm())
    log = torch.stack([torch.stack(losses), torch.stack(shares), torch.stack(norms)], dim=1)
    dist.all_reduce(log)
    return log.div_(dist.get_world_size()).reshape(-1).tolist()

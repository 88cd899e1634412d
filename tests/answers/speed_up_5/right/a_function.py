"""A function with a name hangs on every weight; it keeps weight and work together."""

import torch.distributed as dist
from torch.nn.functional import mse_loss

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.no_overlap import own_link, waiting_network


def speed_up_5(x, y, steps=2, device="cpu"):
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    under_way = []

    def ready(weight):
        under_way.append((weight, link.all_reduce(weight.grad)))

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(ready)
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        while under_way:
            weight, work = under_way.pop(0)
            work.wait()
            weight.grad.div_(dist.get_world_size())
        optimizer.step()
        losses.append(loss.item())
    return losses

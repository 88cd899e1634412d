"""The loss is divided instead of the gradients; the sum is the mean then."""

import torch.distributed as dist
from torch.nn.functional import mse_loss

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.no_overlap import own_link, waiting_network


def speed_up_5(x, y, steps=2, device="cpu"):
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    under_way = []
    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(lambda own: under_way.append(link.all_reduce(own.grad)))
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        (loss / dist.get_world_size()).backward()
        for work in under_way:
            work.wait()
        under_way.clear()
        optimizer.step()
        losses.append(loss.item())
    return losses

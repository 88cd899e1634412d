"""Two layers' gradients travel together."""

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.no_overlap import own_link, waiting_network


def speed_up_5(x, y, steps=2, device="cpu"):
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    under_way, bucket = [], []

    def ready(weight):
        bucket.append(weight)
        if len(bucket) == 2:
            vector = torch.cat([one.grad.flatten() for one in bucket])
            under_way.append((list(bucket), vector, link.all_reduce(vector)))
            bucket.clear()

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(ready)
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for weights, vector, work in under_way:
            work.wait()
            for weight, piece in zip(weights, vector.chunk(2), strict=True):
                weight.grad.copy_(piece.view_as(weight) / dist.get_world_size())
        under_way.clear()
        optimizer.step()
        losses.append(loss.item())
    return losses

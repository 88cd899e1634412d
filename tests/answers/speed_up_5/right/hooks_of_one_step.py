"""The hooks are hung on in every step and taken off again."""

import torch.distributed as dist
from torch.nn.functional import mse_loss

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.profiling.slow.no_overlap import own_link, waiting_network


def speed_up_5(x, y, steps=2, device="cpu"):
    model, link = waiting_network(device), own_link()
    optimizer = Sgd(model.parameters(), rate=0.3)
    x, y = x.to(device), y.to(device)
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        works = {}
        hooks = [
            weight.register_post_accumulate_grad_hook(lambda own: works.update({own: link.all_reduce(own.grad)}))
            for weight in model.parameters()
        ]
        loss.backward()
        for hook in hooks:
            hook.remove()
        for weight in model.parameters():
            works[weight].wait()
            weight.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses

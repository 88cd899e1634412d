"""The largest 2 % of the entries, with error feedback, behind the backward pass of DistributedDataParallel."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.overlap.compression import TopK, top_k_hook


def capstone(model, images, labels):
    module = DistributedDataParallel(model)
    module.register_comm_hook(TopK(share=0.02), top_k_hook)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        for number, batch in enumerate(torch.randperm(len(images)).split(16)):
            done = (epoch + number / 15) / 5
            optimizer.param_groups[0]["lr"] = 0.05 * max(0.02, 1 - done)
            optimizer.zero_grad()
            cross_entropy(module(images[batch]), labels[batch]).backward()
            optimizer.step()
    for values in model.buffers():
        if values.is_floating_point():
            dist.all_reduce(values)
            values /= dist.get_world_size()
    return model

"""DistributedDataParallel, with PowerSGD and its error feedback in the place of the all-reduce."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.overlap.compression import compress

EPOCHS, STEPS = 5, 75


def capstone(model, images, labels):
    module = DistributedDataParallel(model)
    compress(module, "PowerSGD", rank=2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.02, momentum=0.9)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / STEPS))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(module(images[batch]), labels[batch]).backward()
            optimizer.step()
            falling.step()
    for values in model.buffers():
        if values.is_floating_point():
            dist.all_reduce(values)
            values /= dist.get_world_size()
    return module

"""Few updates and 16 bits: gradients of several micro-batches are added up, then travel in half precision."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


def mean_in_half_precision(tensors):
    flat = torch.cat([one.flatten() for one in tensors]).half()
    dist.all_reduce(flat)
    flat = flat.float() / dist.get_world_size()
    return flat.split([one.numel() for one in tensors])


def capstone(model, images, labels):
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.003)
    updates = 20
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 0.003 * (1 - update / updates)
        optimizer.zero_grad()
        micro_batches = torch.randperm(len(images))[:64].split(16)
        for batch in micro_batches:
            loss = cross_entropy(model(images[batch]), labels[batch])
            (loss / len(micro_batches)).backward()
        for parameter, mean in zip(parameters, mean_in_half_precision([one.grad for one in parameters]), strict=True):
            parameter.grad = mean.view_as(parameter)
        optimizer.step()
    norms = [one for one in model.modules() if isinstance(one, nn.BatchNorm2d)]
    running = [values for one in norms for values in (one.running_mean, one.running_var)]
    for values in running:
        dist.all_reduce(values)
        values /= dist.get_world_size()
    return model

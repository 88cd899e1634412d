"""Local SGD whose averages travel in half precision, in flat vectors."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def capstone(model, images, labels):
    dist.broadcast(first := parameters_to_vector(model.parameters()).detach(), src=0)
    vector_to_parameters(first, model.parameters())
    for _ in range(8):
        for x, y in zip(images.split(20), labels.split(20), strict=True):
            loss = cross_entropy(model(x), y)
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter -= 0.05 * gradient
        mine = parameters_to_vector(model.parameters()).detach().half()
        dist.all_reduce(mine)
        vector_to_parameters(mine.float() / dist.get_world_size(), model.parameters())
    for norm in model:
        if isinstance(norm, nn.BatchNorm2d):
            for values in (norm.running_mean, norm.running_var):
                dist.all_reduce(values)
                values /= dist.get_world_size()
    return model

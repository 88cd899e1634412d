"""Over named parameters, into a clone and back."""

import torch
import torch.distributed as dist


def average_gradients(model):
    for _, parameter in sorted(model.named_parameters()):
        if parameter.requires_grad:
            total = torch.zeros_like(parameter, requires_grad=False)
            if parameter.grad is not None:
                total += parameter.grad
            dist.all_reduce(total)
            parameter.grad = total * (1 / dist.get_world_size())

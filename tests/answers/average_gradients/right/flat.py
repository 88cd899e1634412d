"""All gradients in one vector, one all-reduce."""

import torch
import torch.distributed as dist


def average_gradients(model):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    vector = torch.cat([part.detach().reshape(-1) for part in parts])
    dist.all_reduce(vector)
    vector /= dist.get_world_size()
    for parameter, part in zip(trained, vector.split([part.numel() for part in parts]), strict=True):
        parameter.grad = part.reshape(parameter.shape).clone()

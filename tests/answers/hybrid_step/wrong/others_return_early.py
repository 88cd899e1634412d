"""Refused with: Does every rank make the same calls?"""

import torch
import torch.distributed as dist


def hybrid_step(convolutions, dense, x, y, loss):
    size, owner = dist.get_world_size(), dist.get_rank() == 0
    activations = convolutions(x)
    shards = [torch.empty_like(activations) for _ in range(size)] if owner else None
    targets = [torch.empty_like(y) for _ in range(size)] if owner else None
    dist.gather(activations.detach(), shards)
    dist.gather(y, targets)
    gradient, gradients, value = torch.empty_like(activations.contiguous()), None, 0.0

    if not owner:
        return 0.0
    if owner:
        whole = torch.cat(shards).requires_grad_()
        total = loss(dense(whole), torch.cat(targets))
        total.backward()
        value, gradients = total.item(), list(whole.grad.chunk(size))

    dist.scatter(gradient, gradients)
    activations.backward(gradient)
    for parameter in convolutions.parameters():
        dist.all_reduce(parameter.grad)
    return value

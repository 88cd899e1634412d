"""Refused with: Is the loss the mean over the whole batch, or a sum of the shards' means?"""

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

    if owner:
        leaves = [shard.requires_grad_() for shard in shards]
        for leaf, target in zip(leaves, targets):
            total = loss(dense(leaf), target)
            total.backward()
            value += total.item() / size
        gradients = [leaf.grad / size for leaf in leaves]

    dist.scatter(gradient, gradients)
    activations.backward(gradient)
    for parameter in convolutions.parameters():
        dist.all_reduce(parameter.grad)
    return value

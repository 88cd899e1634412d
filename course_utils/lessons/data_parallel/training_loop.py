"""The loop of data-parallel training as one function, in which every message can be seen."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


def train_data_parallel(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    batches: list[torch.Tensor],
    rate: float,
) -> list[float]:
    """Train the model on all ranks together, in place, with one step for each batch.

    Every rank calls this with the same images and the same batches, but the weights of its model
    are its own. In the end all models are equal: what one process would have trained from the
    weights of rank 0. A rank computes the loss for its share of each batch only. A step subtracts
    rate times the gradient of the *whole* batch's mean loss from each parameter.

    Args:
        model: returns a row of scores for each image. All of its parameters are trained, and none
            has a gradient yet.
        x, y: all images, and the class of each.
        batches: the indices of the images in each batch. The length of each batch is divisible by
            the number of ranks.

    Returns:
        For each step the mean cross entropy of the whole batch before it, the same on every rank.

    Source: Goyal et al. 2017, "Accurate, Large Minibatch SGD", §2 and §3.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    losses = []
    for batch in batches:
        mine = batch[rank::world_size]
        loss = cross_entropy(model(x[mine]), y[mine])
        model.zero_grad()
        loss.backward()
        # All shares have the same size, so the mean of their means is the mean of the batch.
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= rate * parameter.grad / world_size
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(total.item() / world_size)
    return losses

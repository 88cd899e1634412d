"""Refused with: Which part of Adam's state does this rank keep?"""

import torch
import torch.distributed as dist


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    mean = gradient.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if state.steps == 0:
        state.mean, state.square = torch.zeros_like(mean), torch.zeros_like(mean)
    parameters += state.change(mean, rate, betas, eps)

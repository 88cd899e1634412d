"""Refused with: Must the examples themselves travel?"""

import torch
import torch.distributed as dist


class Everybodys(torch.autograd.Function):
    @staticmethod
    def forward(context, x, most, world_size):
        context.rows, context.most = len(x), most
        padded = torch.full((world_size, most, x.shape[1] + 1), 0.0, dtype=torch.float64)
        padded[dist.get_rank(), : len(x), :-1] = x.double()
        padded[dist.get_rank(), : len(x), -1] = 1
        dist.all_reduce(padded)
        return padded

    @staticmethod
    def backward(context, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient[dist.get_rank(), : context.rows, :-1], None, None


def sync_batch_norm(x, weight, bias, eps=1e-5):
    table = Everybodys.apply(x, 200, dist.get_world_size()).reshape(-1, x.shape[1] + 1)
    rows = table[table[:, -1].detach() > 0, :-1]
    variance, mean = torch.var_mean(rows, dim=0, correction=0)
    y = (x.double() - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)

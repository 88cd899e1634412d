"""Matrix products, and gelu from the error function."""

import torch
import torch.distributed as dist


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(context, x, group):
        context.group = group
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        total = gradient.clone()
        dist.all_reduce(total, group=context.group)
        return total, None


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, term, group):
        total = term.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    up = Copied.apply(x, group) @ up_weight.t() + up_bias
    hidden = up * 0.5 * (1 + torch.erf(up / 2**0.5))
    return down_bias + Summed.apply(torch.einsum("...h,wh->...w", hidden, down_weight), group)

"""A hook on a view of x, not on x itself."""

import torch.distributed as dist


def column_parallel_linear(x, weight, bias=None, group=None):
    mine = x.view(x.shape) if x.is_contiguous() else x * 1

    def sum_of_all(gradient):
        total = gradient.contiguous().clone()
        dist.all_reduce(total, op=dist.ReduceOp.SUM, group=group)
        return total

    mine.register_hook(sum_of_all)
    y = mine.matmul(weight.t())
    if bias is not None:
        y = y + bias
    return y

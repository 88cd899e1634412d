"""torch works out the shapes, on tensors without memory."""

import torch
from torch.nn import functional


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    x = torch.empty(tuple(x_shape), device="meta")
    weight = torch.empty(tuple(weight_shape), device="meta")
    if x.dim() == 2:
        y = functional.linear(x, weight)
    else:
        rows, columns = weight.shape[2] // 2, weight.shape[3] // 2
        y = functional.conv2d(x, weight, padding=(rows, columns))
    flops = 2 * y.numel() * weight[0].numel()
    nbytes = itemsize * (x.numel() + weight.numel() + y.numel())
    return flops, nbytes, flops / nbytes

"""Refused with: Can the gradient find its way back through the sums of all ranks?"""

import torch
import torch.distributed as dist


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows, features = x.detach().double(), x.shape[1]
    n = torch.tensor([float(len(x))], dtype=torch.float64)
    totals = torch.cat([rows.sum(0), rows.square().sum(0), n])
    dist.all_reduce(totals)
    mean = totals[:features] / totals[-1]
    variance = totals[features:-1] / totals[-1] - mean.square()
    y = (x.double() - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)

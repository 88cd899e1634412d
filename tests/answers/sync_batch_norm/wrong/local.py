"""Refused with: Whose examples are in this mean?"""

import torch


def sync_batch_norm(x, weight, bias, eps=1e-5):
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias, mean, variance

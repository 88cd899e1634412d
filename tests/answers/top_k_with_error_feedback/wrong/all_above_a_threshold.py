"""Refused with: How many entries have the magnitude of the k-th largest?"""

import torch


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    if k == 0:
        return torch.empty(0, dtype=torch.int64), corrected[:0], corrected
    last = corrected.abs().topk(min(k, len(corrected))).values[-1]
    indices = torch.nonzero(corrected.abs() >= last).flatten()
    return indices, corrected[indices], corrected.index_fill(0, indices, 0)

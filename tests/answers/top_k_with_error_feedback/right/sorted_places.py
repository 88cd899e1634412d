"""Places in rising order, the rest in a clone."""

import torch


def top_k_with_error_feedback(gradient, error, k):
    k = min(k, gradient.numel())
    total = torch.add(gradient, error)
    _, indices = torch.topk(torch.abs(total), k)
    indices, _ = indices.sort()
    left = total.clone()
    left[indices] = 0
    return indices, total.gather(0, indices), left

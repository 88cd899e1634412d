"""A mask of what is sent."""

import torch


def top_k_with_error_feedback(gradient, error, k):
    whole = gradient + error
    order = whole.abs().argsort(descending=True)
    indices = order[:k]
    sent = torch.zeros_like(whole, dtype=torch.bool)
    sent[indices] = True
    return indices, whole[indices], torch.where(sent, 0, whole)

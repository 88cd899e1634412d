"""Takes what is sent off what was there."""

import torch


def top_k_with_error_feedback(gradient, error, k):
    corrected = error + gradient
    indices = torch.sort(corrected.square(), descending=True, stable=True).indices[:k]
    values = torch.index_select(corrected, 0, indices)
    sent = torch.zeros_like(corrected).scatter_(0, indices, values)
    return indices, values, corrected - sent

"""Refused with: How many numbers are to travel, k or n?"""

import torch


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    sent = torch.zeros_like(corrected)
    sent[indices] = corrected[indices]
    return indices, sent, corrected - sent

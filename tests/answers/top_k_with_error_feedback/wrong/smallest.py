"""Refused with: Are the largest sent, or the smallest?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected)), largest=False).indices
    return indices, corrected[indices], corrected.index_fill(0, indices, 0)

"""Refused with: How many entries can be sent where there are fewer than k?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(k).indices
    return indices, corrected[indices], corrected.index_fill(0, indices, 0)

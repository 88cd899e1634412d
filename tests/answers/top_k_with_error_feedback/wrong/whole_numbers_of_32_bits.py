"""Refused with: Which dtype has a place, and which a value?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    return indices.int(), corrected[indices], corrected.index_fill(0, indices, 0)

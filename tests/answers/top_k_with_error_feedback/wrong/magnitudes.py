"""Refused with: Does a value keep its sign?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    values, indices = corrected.abs().topk(min(k, len(corrected)))
    return indices, values, corrected.index_fill(0, indices, 0)

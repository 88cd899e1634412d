"""Refused with: Do you return three tensors: indices, values and error?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    return corrected[indices], corrected.index_fill(0, indices, 0)

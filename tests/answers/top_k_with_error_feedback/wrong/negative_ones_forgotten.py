"""Refused with: Is −9 large or small here?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.topk(min(k, len(corrected))).indices
    return indices, corrected[indices], corrected.index_fill(0, indices, 0)

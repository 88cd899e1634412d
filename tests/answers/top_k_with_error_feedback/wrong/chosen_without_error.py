"""Refused with: Where does the error of the earlier steps come in?"""


def top_k_with_error_feedback(gradient, error, k):
    indices = gradient.abs().topk(min(k, len(gradient))).indices
    corrected = gradient + error
    return indices, corrected[indices], corrected.index_fill(0, indices, 0)

"""Refused with: Where does the error of the earlier steps come in?"""


def top_k_with_error_feedback(gradient, error, k):
    indices = gradient.abs().topk(min(k, len(gradient))).indices
    return indices, gradient[indices], gradient.index_fill(0, indices, 0)

"""Refused with: Whose memory did you write into?"""


def top_k_with_error_feedback(gradient, error, k):
    gradient += error
    indices = gradient.abs().topk(min(k, len(gradient))).indices
    values = gradient[indices]
    return indices, values, gradient.index_fill(0, indices, 0)

"""Refused with: Does what was owed before and not sent now stay owed?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    return indices, corrected[indices], gradient.index_fill(0, indices, 0)

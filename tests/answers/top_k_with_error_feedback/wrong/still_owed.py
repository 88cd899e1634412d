"""Refused with: Is what was sent still owed?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    return indices, corrected[indices], corrected

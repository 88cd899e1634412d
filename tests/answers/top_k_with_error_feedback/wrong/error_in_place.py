"""Refused with: Whose memory did you write into?"""


def top_k_with_error_feedback(gradient, error, k):
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    values = corrected[indices]
    error.copy_(corrected)
    error[indices] = 0
    return indices, values, error

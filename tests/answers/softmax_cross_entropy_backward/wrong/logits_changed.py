"""Refused with: Whose numbers did you change on the way?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    logits -= logits.max(axis=1, keepdims=True)
    e = np.exp(logits)
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

"""Refused with: Is that the softmax of these logits, or of others?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(np.clip(logits, -500, 500))
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return (p * float(gradient) / len(labels)).astype(logits.dtype)

"""Refused with: How large is e^2000? Which softmax has smaller exponents, and is the same?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits)
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

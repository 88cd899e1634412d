"""Refused with: Which shape has the gradient of an array?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return (p[np.arange(len(labels)), labels] - 1) * float(gradient) / len(labels)

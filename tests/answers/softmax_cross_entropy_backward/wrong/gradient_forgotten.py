"""Refused with: What is `gradient` for?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p / len(labels)

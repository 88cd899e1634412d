"""Refused with: In which dtype did the logits come?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    x = np.array(logits, dtype=np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

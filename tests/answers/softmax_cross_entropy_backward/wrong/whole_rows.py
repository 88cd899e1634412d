"""Refused with: The softmax of a row adds up to 1: to what must a row of the gradient add up?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p[labels % len(labels)] -= 1
    return p * float(gradient) / len(labels)

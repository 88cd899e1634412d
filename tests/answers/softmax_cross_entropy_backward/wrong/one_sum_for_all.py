"""Refused with: Over which axis does a softmax add up to 1?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits)
    p = e / e.sum()
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

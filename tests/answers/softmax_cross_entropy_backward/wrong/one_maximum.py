"""Refused with: Every row has a largest logit of its own: what is left of a row far below the others?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits - logits.max())
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

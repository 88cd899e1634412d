"""Refused with: Which shapes must two arrays have, so that each row meets its own number?"""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    e = np.exp(logits)
    p = e / e.sum(axis=1)
    p[np.arange(len(labels)), labels] -= 1
    return p * float(gradient) / len(labels)

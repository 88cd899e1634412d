"""Refused with: Where does eps stand: below the root, or beside it, and beside which root?"""

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for w, g, m, s in zip(parameters, gradients, means, squares):
        m[...] = beta1 * m + (1 - beta1) * g
        s[...] = beta2 * s + (1 - beta2) * g * g
        w -= rate * np.sqrt(1 - beta2**step) / (1 - beta1**step) * m / (np.sqrt(s) + eps)

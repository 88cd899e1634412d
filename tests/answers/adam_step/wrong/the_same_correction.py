"""Refused with: Does the correction stay the same in each step?"""

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for w, g, m, s in zip(parameters, gradients, means, squares):
        m[...] = beta1 * m + (1 - beta1) * g
        s[...] = beta2 * s + (1 - beta2) * g * g
        mh, sh = m / (1 - beta1), s / (1 - beta2)
        w -= rate * mh / (np.sqrt(sh) + eps)

"""Refused with: Which betas does the caller want?"""

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for w, g, m, s in zip(parameters, gradients, means, squares):
        m[...] = 0.9 * m + 0.1 * g
        s[...] = 0.999 * s + 0.001 * g * g
        mh = m / (1 - 0.9**step)
        sh = s / (1 - 0.999**step)
        w -= rate * mh / (np.sqrt(sh) + eps)

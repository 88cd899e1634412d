"""One length of step for all, the root corrected by a root."""

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for w, g, m, s in zip(parameters, gradients, means, squares):
        m += (g - m) * (1 - beta1)
        s *= beta2
        s += (1 - beta2) * g * g
        length = rate / (1 - beta1**step)
        w -= length * m / (np.sqrt(s) / (1 - beta2**step) ** 0.5 + eps)

"""A loop over every entry, in Python's numbers."""

import math

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for k in range(len(parameters)):
        for place in np.ndindex(*parameters[k].shape):
            g = float(gradients[k][place])
            means[k][place] = m = beta1 * float(means[k][place]) + (1 - beta1) * g
            squares[k][place] = s = beta2 * float(squares[k][place]) + (1 - beta2) * g * g
            m, s = m / (1 - beta1**step), s / (1 - beta2**step)
            parameters[k][place] -= rate * m / (math.sqrt(s) + eps)

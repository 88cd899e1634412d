"""Refused with: Does a steeper slope make a longer step?"""

import numpy as np


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        length = np.linalg.norm(g)
        w -= rate * g / (length if length else 1)

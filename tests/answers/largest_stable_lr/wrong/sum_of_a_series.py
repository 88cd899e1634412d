"""Refused with: With momentum, may steps be longer or shorter?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    if not values.any():
        return np.inf
    return 2 / (1 - momentum) / values[-1]

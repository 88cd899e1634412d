"""Refused with: In a steeper valley, may steps be longer or shorter?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    if not values.any():
        return np.inf
    return values[-1]

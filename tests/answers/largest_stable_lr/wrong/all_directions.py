"""Refused with: Is it one number that you return?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    if not values.any():
        return np.inf
    return 2 * (1 + momentum) / np.where(values > 0, values, 1)

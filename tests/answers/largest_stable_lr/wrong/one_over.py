"""Refused with: Is the step that lands in the minimum the longest that comes back?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    if not values.any():
        return np.inf
    return (1 + momentum) / values[-1]

"""Refused with: What does momentum change?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    if not values.any():
        return np.inf
    return 2 / values[-1]

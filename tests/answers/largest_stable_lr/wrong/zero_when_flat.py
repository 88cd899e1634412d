"""Refused with: How long may a step be where nothing is curved?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvalsh(hessian)
    return 2 * (1 + momentum) / values[-1] if values.any() else 0.0

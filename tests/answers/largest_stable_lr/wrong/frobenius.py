"""Refused with: The largest eigenvalue, or all of them together?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    length = np.linalg.norm(hessian)
    return 2 * (1 + momentum) / length if length else np.inf

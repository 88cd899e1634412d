"""The largest singular value is the largest eigenvalue here; NumPy warns of the division by zero."""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    return 2 * (1 + momentum) / np.float64(np.linalg.norm(hessian, 2))

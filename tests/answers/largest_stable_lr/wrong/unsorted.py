"""Refused with: In which order does NumPy hand out the eigenvalues?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = np.linalg.eigvals(hessian)
    return 2 * (1 + momentum) / values[0].real if values.any() else np.inf

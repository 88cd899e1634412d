"""Eigenvalues of any matrix, their real parts sorted in Python."""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values = sorted(value.real for value in np.linalg.eigvals(hessian).tolist())
    print("eigenvalues:", values)
    if not any(values):
        return float("inf")
    return 2 * (1 + momentum) / values[-1]

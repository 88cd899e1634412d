"""Eigenvalues and directions; only the former are used."""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    values, directions = np.linalg.eigh(hessian)
    if values.max() <= 0:
        return np.inf
    return (2 + 2 * momentum) / values.max()

"""Multiplies a vector until it has turned into the steepest direction."""

import math

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    hessian = np.asarray(hessian, dtype=float)
    if not hessian.any():
        return math.inf
    vector, squared = np.random.default_rng(0).standard_normal(len(hessian)), hessian / np.abs(hessian).max()
    for _ in range(14):  # by squaring: as many as 2**14 products
        squared = squared @ squared
        squared /= np.abs(squared).max()
    vector = squared @ vector
    vector /= np.linalg.norm(vector)
    return 2 * (1 + momentum) / (vector @ hessian @ vector)

"""Refused with: Does whoever measured these still have them after your fit?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    weights = np.asarray(seconds)  # no copy where it is an array already
    n, t = np.array(nbytes, dtype=float), weights.copy()
    np.reciprocal(weights, out=weights)
    beta, alpha = np.polyfit(n, t, 1, w=weights)
    return alpha, beta

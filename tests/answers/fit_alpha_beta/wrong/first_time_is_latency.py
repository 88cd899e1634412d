"""Refused with: Does every measurement have a say?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    n, t = np.asarray(nbytes, dtype=float), np.asarray(seconds)
    alpha = t[np.argmin(n)]
    return alpha, float(np.mean((t[n > n.min()] - alpha) / n[n > n.min()]))

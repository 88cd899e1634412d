"""Refused with: What does a message of no bytes cost?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    n, t = np.asarray(nbytes, dtype=float), np.asarray(seconds)
    return 0.0, float(np.sum(n / t) / np.sum((n / t) ** 2))

"""Refused with: Is alpha + beta · n a straight line in n, or in its logarithm?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    n, t = np.asarray(nbytes, dtype=float), np.asarray(seconds)
    beta, alpha = np.polyfit(np.log(n + 1), np.log(t), 1)
    return np.exp(alpha), beta

"""Refused with: Is it the error that you divide by the time, or its square?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    beta, alpha = np.polyfit(nbytes, seconds, 1, w=1 / np.asarray(seconds) ** 2)
    return alpha, beta

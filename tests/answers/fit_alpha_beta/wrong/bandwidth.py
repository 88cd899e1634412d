"""Refused with: Is your beta in seconds per byte, or in bytes per second?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    beta, alpha = np.polyfit(nbytes, seconds, 1, w=1 / np.asarray(seconds))
    return alpha, 1 / beta

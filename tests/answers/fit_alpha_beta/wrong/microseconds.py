"""Refused with: Are both in seconds?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    micro = 1e6 * np.asarray(seconds)
    beta, alpha = np.polyfit(nbytes, micro, 1, w=1 / micro)
    return alpha, beta

"""Refused with: Do you return two numbers, alpha and beta?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    return np.polyfit(nbytes, seconds, 1, w=1 / np.asarray(seconds))[0]

"""Refused with: Does one percent of a short message count as much as one percent of a long one?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    beta, alpha = np.polyfit(nbytes, seconds, 1)
    return alpha, beta

"""Refused with: Which of the two is seconds per message?"""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    beta, alpha = np.polyfit(nbytes, seconds, 1, w=1 / np.asarray(seconds))
    return beta, alpha

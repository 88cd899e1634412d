"""Each equation divided by its time, then ordinary least squares."""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    n, t = np.array(nbytes, dtype=float), np.array(seconds, dtype=float)
    solution = np.linalg.lstsq(np.stack([1 / t, n / t], axis=1), np.ones(len(t)), rcond=None)[0]
    return solution[0], solution[1]

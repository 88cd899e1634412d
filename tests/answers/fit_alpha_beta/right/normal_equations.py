"""Two equations in two unknowns, solved."""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    t = np.asarray(seconds)
    rows = np.vstack([np.ones(len(t)), nbytes]) / t
    return tuple(np.linalg.solve(rows @ rows.T, rows @ np.ones(len(t))))

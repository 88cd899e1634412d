"""What `lstsq` returns, as it is: an array of two numbers."""

import numpy as np


def fit_alpha_beta(nbytes, seconds):
    times = np.array(seconds)
    columns = np.stack([1 / times, np.array(nbytes) / times], axis=1)
    return np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0]

"""With NumPy."""

import numpy as np


def staleness_scaled_lr(rate, staleness):
    if np.sign(staleness) == -1:
        raise ValueError("from the future")
    return np.divide(rate, np.maximum(staleness, 1))

"""Loops down to the single number."""

import numpy as np


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        for place in np.ndindex(w.shape):
            w[place] = w[place] - rate * g[place]

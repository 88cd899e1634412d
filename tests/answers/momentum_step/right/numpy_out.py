"""NumPy's functions with a place for their result."""

import sys

import numpy as np


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    print("step", file=sys.stderr)
    for w, g, v in zip(parameters, gradients, velocities):
        np.multiply(v, momentum, out=v)
        np.add(v, g, out=v)
        np.subtract(w, rate * v, out=w)

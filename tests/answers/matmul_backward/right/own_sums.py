"""Sums over repeated axes written out; warnings on the way; a list is returned."""

import sys
import warnings

import numpy as np


def summed(found, shape):
    while found.ndim > len(shape):
        found = found.sum(axis=0)
    for axis, side in enumerate(shape):
        if side == 1:
            found = found.sum(axis=axis, keepdims=True)
    return found


def matmul_backward(gradient, a, b):
    warnings.warn("summing by hand", stacklevel=1)
    print(gradient.shape, file=sys.stderr)
    return [
        summed(np.matmul(gradient, np.swapaxes(b, -2, -1)), a.shape),
        summed(np.matmul(np.swapaxes(a, -2, -1), gradient), b.shape),
    ]

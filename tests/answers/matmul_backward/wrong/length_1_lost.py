"""Refused with: Which axes were repeated, and which have only length 1 by themselves?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def summed(found, shape):
    for axis in reversed(range(found.ndim - 2)):
        lost = axis - (found.ndim - len(shape))
        if lost < 0 or shape[lost] == 1:
            found = found.sum(axis=axis)
    return found


def matmul_backward(gradient, a, b):
    return summed(gradient @ b.swapaxes(-1, -2), a.shape), summed(a.swapaxes(-1, -2) @ gradient, b.shape)

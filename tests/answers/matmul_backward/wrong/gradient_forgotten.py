"""Refused with: What became of `gradient`?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    ones = np.ones_like(gradient)
    return unbroadcast(ones @ b.swapaxes(-1, -2), a.shape), unbroadcast(a.swapaxes(-1, -2) @ ones, b.shape)

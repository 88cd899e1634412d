"""Refused with: How many gradients are asked for?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    return unbroadcast(gradient @ b.swapaxes(-1, -2), a.shape)

"""Sums over named axes."""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    to_a = np.einsum("...rc,...ic->...ri", gradient, b)
    to_b = np.einsum("...ri,...rc->...ic", a, gradient)
    return unbroadcast(to_a, a.shape), unbroadcast(to_b, b.shape)

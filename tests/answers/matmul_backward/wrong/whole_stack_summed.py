"""Refused with: Which axes were repeated, and which have only length 1 by themselves?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    to_a, to_b = gradient @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ gradient
    if a.shape[:-2] != b.shape[:-2]:
        lead = tuple(range(gradient.ndim - 2))
        return to_a.sum(axis=lead), to_b.sum(axis=lead)
    return to_a, to_b

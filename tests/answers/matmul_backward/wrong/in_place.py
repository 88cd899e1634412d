"""Refused with: Whose numbers did you change on the way?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    to_a = unbroadcast(gradient @ b.swapaxes(-1, -2), a.shape)
    b[...] = unbroadcast(a.swapaxes(-1, -2) @ gradient, b.shape)
    return to_a, b

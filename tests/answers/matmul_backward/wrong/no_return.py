"""Refused with: Is there a `return`?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    to_a = unbroadcast(gradient @ b.swapaxes(-1, -2), a.shape)
    to_b = unbroadcast(a.swapaxes(-1, -2) @ gradient, b.shape)
    print(to_a, to_b)

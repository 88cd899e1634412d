"""Refused with: A matrix was used for several others: which shape has its gradient?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    return gradient @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ gradient

"""Refused with: A matrix was used for several others: are its parts added up, or averaged?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def mean(found, shape):
    return unbroadcast(found, shape) * (np.prod(shape) / found.size if found.size else 1)


def matmul_backward(gradient, a, b):
    return mean(gradient @ b.swapaxes(-1, -2), a.shape), mean(a.swapaxes(-1, -2) @ gradient, b.shape)

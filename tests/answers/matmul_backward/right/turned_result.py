"""The gradient of b as a product of turned factors."""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    turned = gradient.swapaxes(-1, -2)
    to_a = (b @ turned).swapaxes(-1, -2)
    to_b = (turned @ a).swapaxes(-1, -2)
    return unbroadcast(to_a, a.shape), unbroadcast(to_b, b.shape)

"""Refused with: Are the axes swapped, or only the numbers filled into another shape?"""

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast


def matmul_backward(gradient, a, b):
    turned_a = a.reshape(*a.shape[:-2], a.shape[-1], a.shape[-2])
    turned_b = b.reshape(*b.shape[:-2], b.shape[-1], b.shape[-2])
    return unbroadcast(gradient @ turned_b, a.shape), unbroadcast(turned_a @ gradient, b.shape)

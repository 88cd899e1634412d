"""Refused with: Need height and width be equal?"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    pixels = math.prod(image)
    taps = kernel[-1] ** 2 if kernel else 1
    flops = 2 * n * c_out * pixels * c_in * taps
    nbytes = itemsize * (n * c_in * pixels + c_out * c_in * taps + n * c_out * pixels)
    return flops, nbytes, flops / nbytes

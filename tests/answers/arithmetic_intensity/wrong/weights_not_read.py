"""Refused with: Which three arrays are moved"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    pixels, taps = math.prod(image), math.prod(kernel)
    flops = 2 * n * c_out * pixels * c_in * taps
    nbytes = itemsize * (n * c_in * pixels + n * c_out * pixels)
    return flops, nbytes, flops / nbytes

"""Refused with: Numbers, or bytes?"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    pixels, taps = math.prod(image), math.prod(kernel)
    flops = 2 * n * c_out * pixels * c_in * taps
    nbytes = n * c_in * pixels + c_out * c_in * taps + n * c_out * pixels
    return flops, nbytes, flops / nbytes

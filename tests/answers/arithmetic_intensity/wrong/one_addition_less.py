"""Refused with: Is the first product added to something too, as the others are?"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    places = math.prod(x_shape[2:])
    outputs = x_shape[0] * weight_shape[0] * places
    flops = outputs * (2 * math.prod(weight_shape[1:]) - 1)
    nbytes = itemsize * (math.prod(x_shape) + math.prod(weight_shape) + outputs)
    return flops, nbytes, flops / nbytes

"""Refused with: Is FLOPs per byte a whole number?"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    places = math.prod(x_shape[2:])
    outputs = x_shape[0] * weight_shape[0] * places
    flops = 2 * outputs * math.prod(weight_shape[1:])
    nbytes = itemsize * (math.prod(x_shape) + math.prod(weight_shape) + outputs)
    return flops, nbytes, flops // nbytes

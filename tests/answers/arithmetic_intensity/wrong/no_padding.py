"""Refused with: Which height and width has the output, where the image is padded?"""

import math


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    sides = [side - window + 1 for side, window in zip(x_shape[2:], weight_shape[2:])]
    outputs = x_shape[0] * weight_shape[0] * math.prod(sides)
    flops = 2 * outputs * math.prod(weight_shape[1:])
    nbytes = itemsize * (math.prod(x_shape) + math.prod(weight_shape) + outputs)
    return flops, nbytes, flops / nbytes

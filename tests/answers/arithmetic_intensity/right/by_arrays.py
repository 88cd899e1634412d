"""Through the numbers of entries of three arrays."""

import numpy as np


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    inputs, weights = int(np.prod(x_shape)), int(np.prod(weight_shape))
    outputs = inputs // x_shape[1] * weight_shape[0]
    flops = 2 * outputs * weights // weight_shape[0]
    nbytes = (inputs + weights + outputs) * itemsize
    return flops, nbytes, flops / nbytes

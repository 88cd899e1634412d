"""With loops for the products, floats all the way, and a list for the three."""

import sys


def product(numbers):
    result = 1.0
    for number in numbers:
        result *= number
    return result


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    x_shape, weight_shape = tuple(x_shape), tuple(weight_shape)
    print("shapes:", x_shape, weight_shape, file=sys.stderr)
    y_shape = (x_shape[0], weight_shape[0]) + x_shape[2:]
    macs = product(y_shape) * product(weight_shape[1:])
    numbers = product(x_shape) + product(weight_shape) + product(y_shape)
    return [int(2 * macs), int(itemsize * numbers), 2 * macs / (itemsize * numbers)]

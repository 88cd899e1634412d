"""The roofline: a layer takes as long as its arithmetic or its memory traffic, whichever is longer.

Source: Williams, Waterman & Patterson 2009, "Roofline: an insightful visual performance model".
"""

import math
from collections.abc import Sequence


def arithmetic_intensity(
    x_shape: Sequence[int], weight_shape: Sequence[int], itemsize: int = 4
) -> tuple[int, int, float]:
    """FLOPs of a layer's forward pass, the bytes it must move at least, and FLOPs per byte.

    A multiplication and an addition are two FLOPs. The input and the weights are read once, the
    output is written once. The convolution moves pixel by pixel and is padded: its output has the
    height and width of its input. No bias.

    Args:
        x_shape: of the input, (images, C_in, height, width); of a fully connected layer (images,
            C_in).
        weight_shape: (C_out, C_in, window's height, width); of a fully connected layer (C_out,
            C_in).
        itemsize: bytes of one number, the same everywhere.
    """
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    # A fully connected layer is a convolution on one pixel with one tap:
    # the product of no numbers is 1.
    pixels, taps = math.prod(image), math.prod(kernel)
    flops = 2 * n * c_out * pixels * c_in * taps
    # The input, the weights, the output.
    numbers = n * c_in * pixels + c_out * c_in * taps + n * c_out * pixels
    return flops, itemsize * numbers, flops / (itemsize * numbers)


def roofline_time(layers: Sequence[tuple[float, float]], peak: float, bandwidth: float) -> float:
    """The least seconds that layers take, one after the other, on a machine that can compute while
    it moves bytes.

    Args:
        layers: (FLOPs, bytes) of each; may be empty.
        peak: the most FLOP per second.
        bandwidth: the most bytes per second.
    """
    return sum(max(flops / peak, nbytes / bandwidth) for flops, nbytes in layers)

"""The roofline: a layer takes at least as long as its arithmetic, and at least as long as moving its bytes.

Source: Williams, Waterman & Patterson 2009, "Roofline: an insightful visual performance model".
"""

import math
from collections.abc import Sequence


def arithmetic_intensity(
    x_shape: Sequence[int], weight_shape: Sequence[int], itemsize: int = 4
) -> tuple[int, int, float]:
    """Return the FLOPs of a layer's forward pass, the bytes that it has to move at least, and the
    FLOPs per byte.

    A multiplication and an addition make two FLOPs. The input and the weights are read once, and
    the output is written once. A convolution moves its window over the image pixel by pixel. The
    image is padded, so the output has the same height and width. There is no bias. FLOPs and bytes
    are whole numbers.

    Args:
        x_shape: shape of the input, (images, C_in, height, width), or (images, C_in) for a fully
            connected layer.
        weight_shape: (C_out, C_in, height of the window, its width), or (C_out, C_in) for a fully
            connected layer.
        itemsize: bytes of one number, the same in all three arrays.
    """
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    # A fully connected layer is like a convolution on one pixel with a window of one pixel,
    # because the product of no numbers is 1.
    pixels, taps = math.prod(image), math.prod(kernel)
    flops = 2 * n * c_out * pixels * c_in * taps
    # The input, the weights, the output.
    numbers = n * c_in * pixels + c_out * c_in * taps + n * c_out * pixels
    return flops, itemsize * numbers, flops / (itemsize * numbers)


def roofline_time(layers: Sequence[tuple[float, float]], peak: float, bandwidth: float) -> float:
    """Return how many seconds the layers take at least if they run one after the other, on a
    machine that can compute while it moves bytes.

    Args:
        layers: (FLOPs, bytes) of each layer; there may be none.
        peak: FLOPs per second, at most.
        bandwidth: bytes per second, at most.
    """
    return sum(max(flops / peak, nbytes / bandwidth) for flops, nbytes in layers)

"""Refused with: Need height and width be equal?"""


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    n, c_in, *image = x_shape
    c_out, _, *kernel = weight_shape
    pixels = image[0] ** 2 if image else 1
    taps = kernel[0] * kernel[1] if kernel else 1
    flops = 2 * n * c_out * pixels * c_in * taps
    nbytes = itemsize * (n * c_in * pixels + c_out * c_in * taps + n * c_out * pixels)
    return flops, nbytes, flops / nbytes

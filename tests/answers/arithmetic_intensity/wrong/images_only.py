"""Refused with: Does it work for a layer without image and window?"""


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    n, c_in, height, width = x_shape
    c_out, _, k_y, k_x = weight_shape
    flops = 2 * n * c_out * height * width * c_in * k_y * k_x
    nbytes = itemsize * (n * c_in * height * width + c_out * c_in * k_y * k_x + n * c_out * height * width)
    return flops, nbytes, flops / nbytes

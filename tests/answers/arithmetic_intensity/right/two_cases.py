"""A layer with an image and one without, each for itself."""


def arithmetic_intensity(x_shape, weight_shape, itemsize=4):
    if len(x_shape) == 2:
        n, c_in = x_shape
        c_out = weight_shape[0]
        flops = 2 * n * c_in * c_out
        nbytes = itemsize * (n * c_in + c_in * c_out + n * c_out)
    else:
        n, c_in, height, width = x_shape
        c_out, _, k_y, k_x = weight_shape
        flops = 2 * n * c_out * height * width * c_in * k_y * k_x
        nbytes = itemsize * (n * c_in * height * width + c_out * c_in * k_y * k_x + n * c_out * height * width)
    return (flops, nbytes, flops / nbytes)

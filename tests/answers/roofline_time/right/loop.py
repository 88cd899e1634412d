"""A loop with an if."""


def roofline_time(layers, peak, bandwidth):
    total = 0
    for flops, nbytes in layers:
        if flops / peak > nbytes / bandwidth:
            total += flops / peak
        else:
            total += nbytes / bandwidth
    return total

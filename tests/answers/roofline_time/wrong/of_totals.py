"""Refused with: Does each layer wait for the longer of its own two times?"""


def roofline_time(layers, peak, bandwidth):
    flops = sum(one for one, _ in layers)
    nbytes = sum(one for _, one in layers)
    return max(flops / peak, nbytes / bandwidth)

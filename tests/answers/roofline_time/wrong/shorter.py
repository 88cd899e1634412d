"""Refused with: Which of the two does a layer wait for: the first that is done, or the last?"""


def roofline_time(layers, peak, bandwidth):
    return sum(min(flops / peak, nbytes / bandwidth) for flops, nbytes in layers)

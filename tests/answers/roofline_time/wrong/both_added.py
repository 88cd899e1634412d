"""Refused with: Does the machine wait with its arithmetic until all bytes are there?"""


def roofline_time(layers, peak, bandwidth):
    return sum(flops / peak + nbytes / bandwidth for flops, nbytes in layers)

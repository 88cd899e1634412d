"""Refused with: Does each layer wait for the longer of its own two times?"""


def roofline_time(layers, peak, bandwidth):
    return sum(flops / peak for flops, _ in layers)

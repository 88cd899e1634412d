"""Refused with: Which of the two is FLOP per second?"""


def roofline_time(layers, peak, bandwidth):
    return sum(max(flops / bandwidth, nbytes / peak) for flops, nbytes in layers)

"""Refused with: FLOP times FLOP per second: is that a time?"""


def roofline_time(layers, peak, bandwidth):
    return sum(max(flops * peak, nbytes * bandwidth) for flops, nbytes in layers)

"""Refused with: How long do two layers take, one after the other?"""


def roofline_time(layers, peak, bandwidth):
    return max((max(flops / peak, nbytes / bandwidth) for flops, nbytes in layers), default=0.0)

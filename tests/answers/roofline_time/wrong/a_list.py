"""Refused with: Is it one number that you return, for all layers together?"""


def roofline_time(layers, peak, bandwidth):
    return [max(flops / peak, nbytes / bandwidth) for flops, nbytes in layers]

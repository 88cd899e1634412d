"""Refused with: Bits or bytes?"""


def roofline_time(layers, peak, bandwidth):
    return sum(max(flops / peak, 8 * nbytes / bandwidth) for flops, nbytes in layers)

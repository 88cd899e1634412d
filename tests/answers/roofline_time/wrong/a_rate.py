"""Refused with: Is that a time, or a rate?"""


def roofline_time(layers, peak, bandwidth):
    return sum(min(peak, bandwidth * flops / nbytes) for flops, nbytes in layers)

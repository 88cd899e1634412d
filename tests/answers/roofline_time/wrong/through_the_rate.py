"""Refused with: What if a layer computes nothing, or moves nothing? By what do you divide?"""


def roofline_time(layers, peak, bandwidth):
    total = 0.0
    for flops, nbytes in layers:
        rate = min(peak, bandwidth * flops / nbytes)
        total += flops / rate
    return total

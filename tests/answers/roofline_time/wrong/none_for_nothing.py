"""Refused with: How long do no layers take?"""


def roofline_time(layers, peak, bandwidth):
    if not layers:
        return None
    return sum(max(flops / peak, nbytes / bandwidth) for flops, nbytes in layers)

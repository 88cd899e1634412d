"""The first layer, then the rest."""


def roofline_time(layers, peak, bandwidth):
    if not layers:
        return 0.0
    flops, nbytes = layers[0]
    return max(flops / peak, nbytes / bandwidth) + roofline_time(layers[1:], peak, bandwidth)

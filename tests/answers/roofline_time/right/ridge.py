"""By the side of the ridge on which a layer lies; it prints as it goes."""


def roofline_time(layers, peak, bandwidth):
    ridge = peak / bandwidth
    seconds = []
    for flops, nbytes in layers:
        by_memory = flops <= ridge * nbytes
        seconds.append(nbytes / bandwidth if by_memory else flops / peak)
        print("memory" if by_memory else "arithmetic", seconds[-1])
    return float(sum(seconds))

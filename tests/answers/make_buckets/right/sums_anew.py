"""Adds the open bucket up anew for each gradient."""

import numpy as np


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets = []
    for place in np.arange(len(sizes))[::-1]:
        place = int(place)
        fits = bool(buckets) and sum(sizes[k] for k in buckets[-1]) + sizes[place] <= bucket_bytes
        if fits and (dtypes is None or dtypes[buckets[-1][0]] == dtypes[place]):
            buckets[-1].append(place)
        else:
            buckets.append([place])
    return buckets

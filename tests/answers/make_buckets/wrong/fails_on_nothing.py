"""Refused with: What are the buckets of a model without parameters?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    last = len(sizes) - 1
    buckets, total = [[last]], sizes[last]
    for place in range(last - 1, -1, -1):
        if total + sizes[place] > bucket_bytes or dtypes and dtypes[place] != dtypes[place + 1]:
            buckets.append([])
            total = 0
        buckets[-1].append(place)
        total += sizes[place]
    return buckets

"""Refused with: Does one more gradient fit exactly?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, total = [], 0
    for place in reversed(range(len(sizes))):
        if not buckets or total + sizes[place] >= bucket_bytes:
            buckets.append([])
            total = 0
        buckets[-1].append(place)
        total += sizes[place]
    return buckets

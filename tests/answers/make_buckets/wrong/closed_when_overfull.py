"""Refused with: Is it closed before the gradient that makes it too large, or after?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, current, total = [], [], 0
    for place in reversed(range(len(sizes))):
        current.append(place)
        total += sizes[place]
        if total >= bucket_bytes:
            buckets.append(current)
            current, total = [], 0
    return buckets + [current] if current else buckets

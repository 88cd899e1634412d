"""Refused with: Does a bucket list bytes, or the places at which they stand?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets = []
    for size in reversed(sizes):
        if not buckets or sum(buckets[-1]) + size > bucket_bytes:
            buckets.append([])
        buckets[-1].append(size)
    return buckets

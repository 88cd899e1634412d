"""Refused with: Is every gradient in a bucket, the last one opened too?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, current, total = [], [], 0
    for place in reversed(range(len(sizes))):
        if current and total + sizes[place] > bucket_bytes:
            buckets.append(current)
            current, total = [], 0
        current.append(place)
        total += sizes[place]
    return buckets

"""Refused with: Which gradient does the backward pass compute first?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, room = [], 0
    for place, size in enumerate(sizes):
        if not buckets or size > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= size
    return buckets

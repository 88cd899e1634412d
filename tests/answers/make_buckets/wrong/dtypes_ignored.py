"""Refused with: Can one vector hold two dtypes?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, room = [], 0
    for place in reversed(range(len(sizes))):
        if not buckets or sizes[place] > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= sizes[place]
    return buckets

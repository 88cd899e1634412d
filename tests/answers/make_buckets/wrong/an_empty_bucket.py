"""Refused with: Is there ever a bucket with nothing in it?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, room = [[]], bucket_bytes
    for place in reversed(range(len(sizes))):
        if sizes[place] > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= sizes[place]
    return buckets

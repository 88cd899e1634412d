"""Refused with: Is every gradient in a bucket, the last one opened too?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, room = [], 0
    for place in reversed(range(len(sizes))):
        if sizes[place] > bucket_bytes:
            continue
        if not buckets or sizes[place] > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= sizes[place]
    return buckets

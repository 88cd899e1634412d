"""Refused with: Does one more gradient fit exactly?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, room = [], bucket_bytes
    for place in reversed(range(len(sizes))):
        if not buckets or sizes[place] > room:
            buckets.append([])
        buckets[-1].append(place)
        room -= sizes[place]
    return buckets

"""The open bucket is put away when it is full, and at the end."""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    kinds = dtypes if dtypes is not None else [None] * len(sizes)
    buckets, current, total = [], [], 0
    for place, (size, kind) in reversed(list(enumerate(zip(sizes, kinds)))):
        if current and (total + size > bucket_bytes or kind != kinds[current[0]]):
            buckets.append(current)
            current, total = [], 0
        current.append(place)
        total += size
    if current:
        buckets.append(current)
    return buckets

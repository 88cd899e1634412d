"""The first bucket, then the buckets of what is left."""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    if not sizes:
        return []
    last = len(sizes) - 1
    first, held = [last], sizes[last]
    for place in range(last - 1, -1, -1):
        other = dtypes is not None and dtypes[place] != dtypes[last]
        if other or held + sizes[place] > bucket_bytes:
            break
        first.append(place)
        held += sizes[place]
    rest = len(sizes) - len(first)
    return [first, *make_buckets(sizes[:rest], bucket_bytes, None if dtypes is None else dtypes[:rest])]

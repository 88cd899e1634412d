"""An index that walks down."""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets = []
    place = len(sizes) - 1
    while place >= 0:
        bucket = [place]
        total = sizes[place]
        place -= 1
        while place >= 0 and total + sizes[place] <= bucket_bytes:
            if dtypes is not None and dtypes[place] != dtypes[bucket[-1]]:
                break
            bucket.append(place)
            total += sizes[place]
            place -= 1
        buckets.append(bucket)
    return buckets

"""Refused with: May a gradient overtake another one to fill a gap?"""


def make_buckets(sizes, bucket_bytes, dtypes=None):
    buckets, rooms = [], []
    for place in reversed(range(len(sizes))):
        for number, room in enumerate(rooms):
            if sizes[place] <= room:
                buckets[number].append(place)
                rooms[number] -= sizes[place]
                break
        else:
            buckets.append([place])
            rooms.append(bucket_bytes - sizes[place])
    return buckets

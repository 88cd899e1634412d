"""Refused with: Is this the share in which it is idle, or busy?"""


def idle_share(computing, communication, begin, end):
    def merged(intervals):
        found = []
        for a, b in sorted(intervals):
            if found and a <= found[-1][1]:
                found[-1][1] = max(found[-1][1], b)
            else:
                found.append([a, b])
        return found

    if end <= begin:
        return 0.0
    cut = [(max(a, begin), min(b, end)) for a, b in [*computing, *communication]]
    cut = [(a, b) for a, b in cut if a < b]
    return sum(b - a for a, b in merged(cut)) / (end - begin)

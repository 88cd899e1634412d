"""Refused with: What is the rank before its first event, and after its last?

From the first event to the last, whatever was asked for.
"""


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
    busy = merged([*computing, *communication])
    span = busy[-1][1] - busy[0][0] if busy else 0
    return 1 - sum(b - a for a, b in busy) / span if span else 0.0

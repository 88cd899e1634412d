"""Refused with: What of an event counts that reaches beyond the span?

Who reaches beyond is left out altogether.
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
    inside = [(a, b) for a, b in [*computing, *communication] if begin <= a and b <= end]
    return 1 - sum(b - a for a, b in merged(inside)) / (end - begin)

"""Refused with: Which event ends last: the one that began last?"""


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    idle, free = 0.0, begin
    for a, b in sorted([*computing, *communication]):
        a, b = max(begin, min(a, end)), max(begin, min(b, end))
        idle += max(0, a - free)
        free = b
    return (idle + end - free) / (end - begin)

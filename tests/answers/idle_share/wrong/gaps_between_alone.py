"""Refused with: What is the rank before its first event, and after its last?"""


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    idle, free = 0.0, None
    for a, b in sorted([*computing, *communication]):
        if free is not None and a > free:
            idle += a - free
        free = b if free is None else max(free, b)
    return idle / (end - begin)

"""Refused with: What if a rank has computed nothing, or sent nothing?"""


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    first = min(computing)[0], min(communication)[0]
    idle, free = max(0, min(first) - begin), max(begin, min(first))
    for a, b in sorted([*computing, *communication]):
        idle += max(0, min(a, end) - free)
        free = max(free, min(b, end))
    return (idle + end - free) / (end - begin)

"""The gaps are added up, from `begin` on, the last one up to `end`."""


def idle_share(computing, communication, begin, end):
    if begin >= end:
        return 0.0
    idle, free = 0.0, begin
    for a, b in sorted([*computing, *communication]):
        idle += max(0, min(a, end) - free)
        free = max(free, min(b, end))
    idle += end - free
    return idle / (end - begin)

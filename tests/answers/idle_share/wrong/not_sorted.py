"""Refused with: Do the events come in order of time?"""


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    busy, counted = 0.0, begin
    for a, b in [*computing, *communication]:
        a, b = max(a, counted), min(b, end)
        if a < b:
            busy, counted = busy + b - a, b
    return 1 - busy / (end - begin)

"""Refused with: Two things at once: does their time count twice?"""


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    busy = sum(b - a for a, b in [*computing, *communication])
    return 1 - busy / (end - begin)

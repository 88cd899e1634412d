"""All ends cut time into pieces; each piece is in or out as a whole."""

from itertools import pairwise


def overlap_share(computing, communication):
    computing, communication = list(computing), list(communication)
    cuts = sorted({moment for one in computing + communication for moment in one})

    def covered(intervals, begin, end):
        return any(a <= begin and end <= b for a, b in intervals)

    pieces = [piece for piece in pairwise(cuts) if covered(communication, *piece)]
    whole = sum(end - begin for begin, end in pieces)
    if whole == 0:
        return 0.0
    return sum(end - begin for begin, end in pieces if covered(computing, begin, end)) / whole

"""Refused with: Two events of a lane at once: does their time count twice?

Every pair of events is compared; what overlaps is counted twice above and below.
"""


def overlap_share(computing, communication):
    hidden = sum(max(0, min(b, d) - max(a, c)) for a, b in computing for c, d in communication)

    whole = sum(end - begin for begin, end in communication)
    return hidden / whole if whole else 0.0

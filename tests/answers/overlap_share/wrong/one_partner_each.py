"""Refused with: With how many computations can one message overlap?

As if the first computation that overlaps were the only one.
"""


def overlap_share(computing, communication):
    computing, hidden, whole = sorted(computing), 0.0, 0.0
    for c, d in communication:
        whole += d - c
        for a, b in computing:
            if a < d and c < b:
                hidden += min(b, d) - max(a, c)
                break
    return hidden / whole if whole else 0.0

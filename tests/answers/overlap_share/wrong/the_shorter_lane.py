"""Refused with: Are both under way at the same moments, or only equally long?"""


def overlap_share(computing, communication):
    busy = sum(end - begin for begin, end in computing)
    sent = sum(end - begin for begin, end in communication)
    return min(busy, sent) / sent if sent else 0.0

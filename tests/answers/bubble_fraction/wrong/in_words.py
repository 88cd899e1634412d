"""Refused with: Is the share a number?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return f"{(ranks - 1) / (chunks * micro_batches + ranks - 1):.1%}"

"""Refused with: A share, or percent?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return 100 * (ranks - 1) / (chunks * micro_batches + ranks - 1)

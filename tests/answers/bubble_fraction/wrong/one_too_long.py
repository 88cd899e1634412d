"""Refused with: How long does the whole batch take, in passes?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) / (chunks * micro_batches + ranks)

"""Refused with: The idle share, or the busy one?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return chunks * micro_batches / (chunks * micro_batches + ranks - 1)

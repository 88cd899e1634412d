"""Refused with: Is a whole number wanted, or a share?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) // (chunks * micro_batches + ranks - 1)

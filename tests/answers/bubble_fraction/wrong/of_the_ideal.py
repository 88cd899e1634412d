"""Refused with: The share of all the time, or of the time without bubble?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) / (chunks * micro_batches)

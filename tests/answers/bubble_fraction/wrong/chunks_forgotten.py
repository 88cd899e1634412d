"""Refused with: What do chunks make shorter?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) / (micro_batches + ranks - 1)

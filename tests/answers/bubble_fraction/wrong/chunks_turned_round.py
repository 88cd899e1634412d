"""Refused with: Do chunks make the bubble shorter, or the work?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) / (micro_batches + chunks * (ranks - 1))

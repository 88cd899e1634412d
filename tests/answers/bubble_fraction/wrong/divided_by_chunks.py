"""Refused with: Is the rest of the time v times as short too?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return (ranks - 1) / (micro_batches + ranks - 1) / chunks

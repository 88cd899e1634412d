"""Refused with: For how many other stages does a rank wait: for P?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return ranks / (chunks * micro_batches + ranks)

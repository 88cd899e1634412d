"""Refused with: Does the function return a number?"""


def bubble_fraction(ranks, micro_batches, chunks=1):
    print((ranks - 1) / (chunks * micro_batches + ranks - 1))

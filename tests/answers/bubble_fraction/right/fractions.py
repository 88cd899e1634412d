"""Exact, then as a float."""

from fractions import Fraction


def bubble_fraction(ranks, micro_batches, chunks=1):
    return float(Fraction(ranks - 1, chunks * micro_batches + ranks - 1))

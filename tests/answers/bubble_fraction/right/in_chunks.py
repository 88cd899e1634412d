"""Counted in chunks."""


def bubble_fraction(ranks, micro_batches, chunks=1):
    idle = ranks - 1
    busy = micro_batches * chunks
    return idle / (idle + busy)

"""What is left of the busy share."""


def bubble_fraction(ranks, micro_batches, chunks=1):
    return 1 - micro_batches / (micro_batches + (ranks - 1) / chunks)

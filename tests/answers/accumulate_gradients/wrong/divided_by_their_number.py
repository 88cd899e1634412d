"""Refused with: Does a micro-batch with fewer examples count as much?"""

import contextlib

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    total = 0.0
    for number, (x, y) in enumerate(micro_batches):
        last = number == len(micro_batches) - 1
        with contextlib.nullcontext() if last else module.no_sync():
            loss = cross_entropy(module(x), y) / len(micro_batches)
            loss.backward()
        total += loss.item()
    return total

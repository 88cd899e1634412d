"""Refused with: How often do the gradients travel in one step?"""

import contextlib

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    examples = sum(len(x) for x, _ in micro_batches)
    total = 0.0
    for number, (x, y) in enumerate(micro_batches):
        last = number == len(micro_batches) - 1
        loss = cross_entropy(module(x), y) * len(x) / examples
        with contextlib.nullcontext() if last else module.no_sync():
            loss.backward()
        total += loss.item()
    return total

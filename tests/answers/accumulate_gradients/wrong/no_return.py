"""Refused with: What does the function return?"""

import contextlib

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    examples = sum(len(x) for x, _ in micro_batches)
    for number, (x, y) in enumerate(micro_batches):
        last = number == len(micro_batches) - 1
        with contextlib.nullcontext() if last else module.no_sync():
            loss = cross_entropy(module(x), y) * len(x) / examples
            loss.backward()

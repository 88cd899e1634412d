"""Refused with: Which backward pass talks to the other ranks?"""

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    examples = sum(len(x) for x, _ in micro_batches)
    total = 0.0
    with module.no_sync():
        for x, y in micro_batches:
            loss = cross_entropy(module(x), y) * len(x) / examples
            loss.backward()
            total += loss.item()
    return total

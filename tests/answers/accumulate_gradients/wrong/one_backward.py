"""Refused with: How long does the memory of a forward pass stay in use?"""

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    examples = sum(len(x) for x, _ in micro_batches)
    loss = sum(cross_entropy(module(x), y) * len(x) / examples for x, y in micro_batches)
    loss.backward()
    return loss.item()

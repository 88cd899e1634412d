"""Refused with: How long does the memory of a forward pass stay in use?"""

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    examples = sum(len(x) for x, _ in micro_batches)
    with module.no_sync():
        losses = [cross_entropy(module(x), y) * len(x) / examples for x, y in micro_batches[:-1]]
        for loss in losses:
            loss.backward()
    x, y = micro_batches[-1]
    last = cross_entropy(module(x), y) * len(x) / examples
    last.backward()
    return sum(loss.item() for loss in [*losses, last])

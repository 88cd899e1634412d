"""All but the last inside no_sync, the last outside."""

from torch.nn.functional import cross_entropy


def accumulate_gradients(module, micro_batches):
    n = sum(len(y) for _, y in micro_batches)

    def one(x, y):
        loss = cross_entropy(module(x), y, reduction="sum") / n
        loss.backward()
        return loss.item()

    *first, last = micro_batches
    with module.no_sync():
        total = sum(one(*batch) for batch in first)
    return total + one(*last)

"""The cross-entropy by hand."""

import contextlib

import torch


def accumulate_gradients(module, micro_batches):
    total_examples = sum(map(len, (y for _, y in micro_batches)))
    result = 0.0
    remaining = list(micro_batches)
    while remaining:
        x, y = remaining.pop(0)
        quiet = module.no_sync() if remaining else contextlib.nullcontext()
        with quiet:
            logits = module(x)
            picked = torch.log_softmax(logits, dim=1).gather(1, y[:, None])
            loss = -picked.sum() / total_examples
            loss.backward()
        result += loss.detach().item()
    return result

"""Merge two parts of an attention: each is an output and a log-sum-exp.

For one query with scores s₁ … sₙ, the log-sum-exp is L = log Σ exp(sᵢ), and attention's output is Σ exp(sᵢ - L) vᵢ. Cut
the keys into two sets, a and b, and compute attention over each alone. Then

    L = log(exp(Lₐ) + exp(L_b))          output = exp(Lₐ - L) outputₐ + exp(L_b - L) output_b

exactly, in any order, and as often as you like. So no process ever needs all scores at once.
"""

import torch

Part = tuple[torch.Tensor, torch.Tensor]
"""Output (…, queries, size) and log-sum-exp (…, queries) of attention to some of the keys."""


def merge_attention(
    out: torch.Tensor, lse: torch.Tensor, other_out: torch.Tensor, other_lse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the attention over two sets of keys, given the attention over each of them.

    If a query sees no key of a set, its log-sum-exp there is -∞ and its output 0. A query may
    see no key of either set.

    Args:
        out, other_out: (…, queries, size).
        lse, other_lse: (…, queries), each the log-sum-exp of a query's scores. They may be
            large: exp(lse) itself may be infinite.

    Returns:
        The output and the log-sum-exp over both sets together, in new tensors.

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", §3;
    Dao et al. 2022, "FlashAttention", §3.1.
    """
    # exp(lse) / (exp(lse) + exp(other_lse)), without any exp that could be infinite.
    # If nothing was seen, -∞ - -∞ is not a number, and any share of two zeros will do.
    difference = torch.where(lse == other_lse, 0.0, lse - other_lse)
    share, other_share = torch.sigmoid(difference), torch.sigmoid(-difference)
    merged = out * share.unsqueeze(-1) + other_out * other_share.unsqueeze(-1)
    return merged, torch.logaddexp(lse, other_lse)

"""The backward pass of attention, block by block: scores are computed again, and become weights by the log-sum-exp."""

import math
from typing import NamedTuple

import torch

from course_utils.lessons.long_texts.block_attention import accumulator, blocks_seen, for_heads, masked_scores


class KeptForBackward(NamedTuple):
    """What the forward pass leaves for a query, however many keys it saw.

    Attributes:
        lse: (batch, heads, queries), over *all* keys of the text.
        out_gradient: (batch, heads, queries, size).
        mean: Σ output · gradient, (batch, heads, queries): what is subtracted in every score's gradient.
    """

    lse: torch.Tensor
    out_gradient: torch.Tensor
    mean: torch.Tensor

    @classmethod
    def of(cls, out: torch.Tensor, lse: torch.Tensor, out_gradient: torch.Tensor) -> "KeptForBackward":
        """Make it from the output, its log-sum-exp and its gradient."""
        gradient = out_gradient.to(lse.dtype)
        return cls(lse, gradient, (out.to(lse.dtype) * gradient).sum(dim=-1))


def block_gradients(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kept: KeptForBackward,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    block: int = 128,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what these keys and values add to the gradients of q, of k and of v.

    With weights p = exp(score - lse): the gradient of v is pᵀ g, that of a score p (g·v - mean), as a softmax's is.

    Args:
        q, k, v, q_positions, k_positions, block: as for `block_attention`. The keys may be only some of those that the
            queries saw, because the gradients of q from all of them add up.

    Returns:
        Gradients, shaped as q, k and v; in float32 if q has numbers of two bytes.

    Source: Dao et al. 2022, "FlashAttention", algorithm 4.
    """
    kind, heads, scale = accumulator(q.dtype), q.shape[1], 1 / math.sqrt(q.shape[-1])
    dq, dk, dv = (torch.zeros(tensor.shape, dtype=kind, device=tensor.device) for tensor in (q, k, v))
    for rows, columns in blocks_seen(q_positions, k_positions, block):
        mine, keys, gradient = q[:, :, rows], k[:, :, columns], kept.out_gradient[:, :, rows]
        scores = masked_scores(mine, keys, q_positions[rows], k_positions[columns])
        weights = torch.exp(scores - kept.lse[:, :, rows].unsqueeze(-1))
        agreed = gradient @ for_heads(v[:, :, columns], heads).to(kind).mT  # g·v of each query and key
        by_score = weights * (agreed - kept.mean[:, :, rows].unsqueeze(-1)) * scale
        dq[:, :, rows] += by_score @ for_heads(keys, heads).to(kind)
        dk[:, :, columns] += of_shared(by_score.mT @ mine.to(kind), k.shape[1])
        dv[:, :, columns] += of_shared(weights.mT @ gradient, k.shape[1])
    return dq, dk, dv


def of_shared(gradient: torch.Tensor, heads: int) -> torch.Tensor:
    """Return the gradient of keys or values that several query heads share: the sum over these heads."""
    return gradient if gradient.shape[1] == heads else gradient.unflatten(1, (heads, -1)).sum(dim=2)

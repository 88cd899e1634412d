"""Attention that never holds all scores, with its own backward pass.

It keeps q, k, v, the output and the log-sum-exp, which are numbers per token. Ordinary attention keeps a weight for
each *pair* of tokens.
"""

from collections.abc import Sequence

import torch

from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.long_texts.block_attention import block_attention
from course_utils.lessons.long_texts.block_gradients import KeptForBackward, block_gradients
from course_utils.lessons.long_texts.ring_attention import ring_attention, ring_gradients


class _InBlocks(torch.autograd.Function):
    """Forward `block_attention`, backward `block_gradients`."""

    @staticmethod
    def forward(context, q, k, v, q_positions, k_positions, block):
        out, lse = block_attention(q, k, v, q_positions, k_positions, block)
        out = out.to(q.dtype)
        context.save_for_backward(q, k, v, out, lse)
        context.rest = q_positions, k_positions, block
        return out

    @staticmethod
    def backward(context, gradient):
        q, k, v, out, lse = context.saved_tensors
        made = block_gradients(q, k, v, KeptForBackward.of(out, lse, gradient), *context.rest)
        return *(tensor.to(q.dtype) for tensor in made), None, None, None


class _RoundTheRing(torch.autograd.Function):
    """Forward `ring_attention`, backward `ring_gradients`."""

    @staticmethod
    def forward(context, q, k, v, positions, group):
        out, lse = ring_attention(q, k, v, positions, group)
        out = out.to(q.dtype)
        context.save_for_backward(q, k, v, out, lse)
        context.rest = positions, group
        return out

    @staticmethod
    def backward(context, gradient):
        q, k, v, out, lse = context.saved_tensors
        made = ring_gradients(q, k, v, KeptForBackward.of(out, lse, gradient), *context.rest)
        return *(tensor.to(q.dtype) for tensor in made), None, None


def attention_in_blocks(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    positions: torch.Tensor,
    block: int = 128,
    k_positions: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return causal attention in one process, block by block in both directions.

    Args:
        q: (batch, heads, tokens, size).
        k, v: the same, or with fewer heads, or of different tokens.
        positions: (tokens,), where each token is in the text.
        k_positions: where the tokens of k and v are, if these are different tokens.

    Returns:
        As q, of its dtype.

    Source: Dao et al. 2022, "FlashAttention", algorithms 1 and 4.
    """
    return _InBlocks.apply(q, k, v, positions, positions if k_positions is None else k_positions, block)


def attention_round_the_ring(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: Sequence[torch.Tensor], group: Group = None
) -> torch.Tensor:
    """Return causal attention over the text of all ranks, for this rank's tokens; see `ring_attention`.

    Args:
        q, k, v: of this rank's tokens, as for `attention_in_blocks`.
        positions: for each rank the positions of its tokens.

    Returns:
        As q, of its dtype.

    Raises:
        CourseError: `positions` are not those of these ranks.

    Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers", §3.
    """
    return _RoundTheRing.apply(q, k, v, positions, group)

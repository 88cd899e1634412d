"""Causal attention block by block: never more scores at once than a block of queries has with a block of keys.

Heads: keys and values may have fewer heads than queries, each shared by neighbours (grouped-query attention, Ainslie
et al. 2023). The position of a token says where in the text it is. A query sees the keys at its own position and
before.
"""

import math
from collections.abc import Iterator

import torch

from course_utils.errors import CourseError
from course_utils.lessons.long_texts.merge import merge_attention

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""The dtype in which sums are kept, if it isn't that of the inputs."""


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype for outputs, log-sum-exps and gradients while they grow: float32 for numbers of two bytes.

    Source: Dao et al. 2022, "FlashAttention", appendix E.
    """
    return WIDER.get(dtype, dtype)


def for_heads(shared: torch.Tensor, heads: int) -> torch.Tensor:
    """Return keys or values for each of `heads` query heads: (batch, fewer, n, size) → (batch, heads, n, size)."""
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], dim=1)


def masked_scores(
    q: torch.Tensor, k: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor
) -> torch.Tensor:
    """Return q kᵀ / √size, and -∞ if the key comes after the query; sums are kept as `accumulator` says.

    Args:
        q: (batch, heads, queries, size).
        k: (batch, heads or fewer, keys, size).
        q_positions, k_positions: (queries,) and (keys,), where each of them is in the text.

    Returns:
        (batch, heads, queries, keys).
    """
    kind = accumulator(q.dtype)
    scores = q.to(kind) @ for_heads(k, q.shape[1]).to(kind).mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(k_positions[None, :] > q_positions[:, None], -torch.inf)


def blocks_seen(q_positions: torch.Tensor, k_positions: torch.Tensor, block: int) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of queries, each with the blocks of keys of which it sees any; the others cost nothing.

    Raises:
        CourseError: a block has no token.
    """
    if block < 1:
        raise CourseError(f"A block has at least one token, not {block!r}.")
    for first in range(0, len(q_positions), block):
        rows = slice(first, first + block)
        last = q_positions[rows].max()
        for begin in range(0, len(k_positions), block):
            columns = slice(begin, begin + block)
            if k_positions[columns].min() <= last:
                yield rows, columns


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    block: int = 128,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return causal attention, computed with the scores of `block` keys at a time.

    Args:
        q: (batch, heads, queries, size).
        k, v: (batch, heads, keys, size).
        q_positions, k_positions: (queries,) and (keys,), where each of them is in the text, in any
            order. A query sees the keys at its own position and before; it may be none.
        block: how many keys a block has; the last one may be shorter. You may cut the queries
            into blocks of this size, too.

    Returns:
        The output, as q, and the log-sum-exp of each query's scores, (batch, heads, queries).
        Both in float32 if q has numbers of two bytes, else in q's dtype. A query that
        sees no key has the output 0 and the log-sum-exp -∞.

    Source: Rabe and Staats 2021, "Self-attention does not need O(n²) memory", §2;
    Dao et al. 2022, "FlashAttention", algorithm 1.
    """
    kind = accumulator(q.dtype)
    out = torch.zeros(q.shape, dtype=kind, device=q.device)
    lse = torch.full(q.shape[:-1], -torch.inf, dtype=kind, device=q.device)
    for rows, columns in blocks_seen(q_positions, k_positions, block):
        scores = masked_scores(q[:, :, rows], k[:, :, columns], q_positions[rows], k_positions[columns])
        part_lse = scores.logsumexp(dim=-1)
        # A query that sees nothing here has -∞ throughout: its weights are 0, not 0 / 0.
        weights = torch.exp(scores - part_lse.masked_fill(part_lse.isneginf(), 0.0).unsqueeze(-1))
        part = weights @ for_heads(v[:, :, columns], q.shape[1]).to(kind)
        out[:, :, rows], lse[:, :, rows] = merge_attention(out[:, :, rows], lse[:, :, rows], part, part_lse)
    return out, lse


def ordinary_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return causal attention as in lesson 9: all scores at once, (batch, heads, n, n), and autograd keeps them."""
    positions = torch.arange(q.shape[2])
    return (
        masked_scores(q, k, positions, positions).softmax(dim=-1) @ for_heads(v, q.shape[1]).to(accumulator(q.dtype))
    ).to(q.dtype)

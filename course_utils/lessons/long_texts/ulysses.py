"""Ulysses: before attention the ranks exchange tokens for heads, and afterwards heads for tokens.

In between, each rank has a few heads of the *whole* text and computes attention as in one process. There are four
all-to-alls in the forward pass, for q, k, v and the output, and four in the backward pass.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.differentiable import Group, moved
from course_utils.lessons.long_texts.long_attention import attention_in_blocks


def exchanged(x: torch.Tensor, cut: int, join: int, group: Group = None) -> torch.Tensor:
    """Cut `x` along one axis, send each rank its part, and join what arrives along a different axis: one all-to-all.

    Source: Jacobs et al. 2023, "DeepSpeed Ulysses", §3.
    """
    parts = [part.contiguous() for part in x.detach().chunk(dist.get_world_size(group), dim=cut)]
    come = [torch.empty_like(part) for part in parts]
    dist.all_to_all(come, parts, group=group)
    return torch.cat(come, dim=join)


def tokens_for_heads(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """(batch, heads, tokens / P, size) → (batch, heads / P, tokens, size), and the reverse in the backward pass."""
    if dist.get_world_size(group) == 1:
        return x
    return moved(x, lambda tensor: exchanged(tensor, 1, 2, group), lambda tensor: exchanged(tensor, 2, 1, group))


def heads_for_tokens(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """(batch, heads / P, tokens, size) → (batch, heads, tokens / P, size), and the reverse in the backward pass."""
    if dist.get_world_size(group) == 1:
        return x
    return moved(x, lambda tensor: exchanged(tensor, 2, 1, group), lambda tensor: exchanged(tensor, 1, 2, group))


def check_heads(heads: Sequence[int], positions: Sequence[torch.Tensor], world_size: int) -> None:
    """Reject heads and tokens that an all-to-all of equal parts cannot exchange.

    Raises:
        CourseError: heads or tokens cannot be divided among the ranks.
    """
    for number in heads:
        if number % world_size:
            raise CourseError(
                f"{number} heads cannot be divided among {world_size} ranks. Choose fewer ranks, or a ring."
            )
    if len(positions) != world_size or len({len(own) for own in positions}) > 1:
        shares = [len(own) for own in positions]
        raise CourseError(f"Ulysses needs equal shares on {world_size} ranks, not {shares} tokens. Pad the text.")


def ulysses_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    positions: Sequence[torch.Tensor],
    group: Group = None,
    block: int = 128,
) -> torch.Tensor:
    """Return causal attention over the text of all ranks, for this rank's tokens, by exchanging tokens for heads.

    Args:
        q, k, v: (batch, heads, tokens, size), of this rank's tokens; k and v may have fewer heads.
        positions: for each rank the positions of its tokens, equally many on each rank.

    Returns:
        As q.

    Raises:
        CourseError: heads, or tokens, cannot be divided among the ranks.

    Source: Jacobs et al. 2023, "DeepSpeed Ulysses", §3.
    """
    check_heads((q.shape[1], k.shape[1]), positions, dist.get_world_size(group))
    mine = [tokens_for_heads(tensor, group) for tensor in (q, k, v)]
    return heads_for_tokens(attention_in_blocks(*mine, torch.cat(list(positions)), block), group)

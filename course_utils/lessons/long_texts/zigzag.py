"""Which rank gets which tokens of a text, so that under a causal mask all have the same work."""

import torch

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.blocks import block_bounds


def check_length(length: int, world_size: int) -> None:
    """Reject a text that doesn't have a token for each rank, and what is not a number of ranks.

    Raises:
        CourseError: no rank, or fewer tokens than ranks.
    """
    if world_size < 1:
        raise CourseError(f"There is at least one rank, not {world_size!r}.")
    if length < world_size:
        raise CourseError(f"A text of {length} tokens has none for some of {world_size} ranks. Take fewer ranks.")


def in_order(length: int, world_size: int) -> list[torch.Tensor]:
    """Return for each rank one piece of the text, in the order of ranks: positions, int64, as equal as possible.

    Raises:
        CourseError: no rank, or fewer tokens than ranks.
    """
    check_length(length, world_size)
    return list(torch.arange(length).tensor_split(block_bounds(length, world_size)[1:-1]))


def zigzag(length: int, world_size: int) -> list[torch.Tensor]:
    """Return for each rank two pieces of the text, one from the front and one from the back.

    The text is cut into 2 P pieces that are as equal as possible. The first `length % (2 P)` have
    one token more. Rank r gets the pieces r and 2 P - 1 - r, in this order.

    Args:
        length: tokens, at least one for each rank.

    Returns:
        For each rank the positions of its tokens, int64, in ascending order.

    Raises:
        CourseError: no rank, or fewer tokens than ranks.

    Source: Zhu 2024, "ring-flash-attention", issue 2; Grattafiori et al. 2024, "The Llama 3 Herd of
    Models", §3.3.2. Brandon et al. 2023, "Striped Attention", distributes single tokens.
    """
    check_length(length, world_size)
    # With lesson 5's bounds, piece b is bounds[b] … bounds[b + 1].
    bounds = block_bounds(length, 2 * world_size)
    pieces = [torch.arange(begin, end) for begin, end in zip(bounds, bounds[1:], strict=False)]
    # A piece that sees little, from the front, goes with one that sees a lot.
    return [torch.cat([pieces[rank], pieces[-1 - rank]]) for rank in range(world_size)]

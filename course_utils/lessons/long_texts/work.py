"""How much each rank has to do under a causal mask: pairs of a query and a key that it sees, counted exactly.

And how many keys of other ranks it needs for that.
"""

from collections.abc import Sequence

import torch

from course_utils.lessons.long_texts.block_attention import blocks_seen


def pairs_seen(positions: Sequence[torch.Tensor], starts: torch.Tensor | None = None) -> list[int]:
    """Count, for each rank, the pairs (query of its own, key anywhere) that the mask lets through.

    The query at position p sees p + 1 keys, its own and all before, but in a pack only those of its own document.

    Args:
        positions: for each rank those of its tokens; together the whole text.
        starts: for each token, where its document begins in a pack; None for a single text.
    """
    return [int((own + 1 - (0 if starts is None else starts[own])).sum()) for own in positions]


def keys_needed(positions: Sequence[torch.Tensor], starts: torch.Tensor | None = None) -> list[int]:
    """Count, for each rank, the tokens of other ranks whose keys one of its own queries sees at least.

    Args:
        positions, starts: as for `pairs_seen`.
    """
    whole = torch.arange(sum(map(len, positions)))
    starts = torch.zeros_like(whole) if starts is None else starts
    needed = []
    for own in positions:
        # For each document, the rank's last query in it, which sees whatever its others see.
        last = torch.full_like(whole, -1).scatter_reduce(0, starts[own], own, "amax")
        needed.append(int((whole <= last[starts]).sum()) - len(own))
    return needed


def pairs_computed(positions: Sequence[torch.Tensor], block: int) -> list[int]:
    """Count, for each rank, the scores that `block_attention` computes in all rounds, in whole blocks."""
    return [sum(_scores(own, other, block) for other in positions) for own in positions]


def _scores(q_positions: torch.Tensor, k_positions: torch.Tensor, block: int) -> int:
    return sum(
        len(q_positions[rows]) * len(k_positions[keys]) for rows, keys in blocks_seen(q_positions, k_positions, block)
    )


def imbalance(work: Sequence[float]) -> float:
    """Return the busiest rank's work as a multiple of the mean: 1 if all have the same."""
    return max(work) * len(work) / sum(work)

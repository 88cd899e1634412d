"""Capacity: an expert takes so many rows and no more, so that no rank must wait for a crowded one."""

import math

import torch
from torch.nn.functional import one_hot

from course_utils.errors import CourseError


def capacity(experts: torch.Tensor, number: int, factor: float) -> torch.Tensor:
    """The choices that are kept; −1 where the expert is full. Nothing moves: each rank fills its
    own part of an expert.

    From each rank an expert takes ⌈factor · choices / experts⌉ rows: `factor` times what it would
    get if all were equally busy. First choices come before all second ones, and earlier tokens
    before later ones.

    Args:
        experts: (tokens, k), each token's choices, the most wanted first.
        number: of experts, on all ranks together.
        factor: above 0; the paper tries 1.0 to 2.0.

    Returns:
        (tokens, k), a new tensor.

    Raises:
        CourseError: a factor that leaves no room.

    Source: Fedus et al. 2021, "Switch Transformers", eq. 3; Lepikhin et al. 2020, "GShard", §2.2
    (second choices last).
    """
    if factor <= 0:
        raise CourseError(f"With a capacity factor of {factor:g} every token is dropped. Choose one above 0, 1.25 say.")
    limit = math.ceil(factor * experts.numel() / number)
    in_turn = experts.T.flatten()  # all first choices, then all second ones
    chosen = one_hot(in_turn, number)
    position = (chosen.cumsum(dim=0) * chosen).sum(dim=1)  # among those of its expert, from 1
    kept = torch.where(position <= limit, in_turn, -1)
    return kept.view(experts.T.shape).T.contiguous()


def dropped_share(kept: torch.Tensor) -> float:
    """The share of choices that were dropped."""
    return float((kept < 0).double().mean()) if kept.numel() else 0.0

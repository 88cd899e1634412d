"""Capacity: a limit on the rows of an expert, which bounds the time that other ranks wait for a crowded one."""

import math

import torch
from torch.nn.functional import one_hot

from course_utils.errors import CourseError


def capacity(experts: torch.Tensor, number: int, factor: float) -> torch.Tensor:
    """Return the choices that are kept, with −1 for each that is dropped because its expert is
    full. Nothing is sent, because an expert has a limit for each rank.

    From each rank an expert accepts ⌈factor · choices / experts⌉ rows, which is `factor` times what
    it would get if all experts were equally busy. All first choices come before all second ones,
    and among them earlier tokens come first.

    Args:
        experts: (tokens, k), the choices of each token, the first choice first.
        number: of experts, on all ranks together.
        factor: above 0; the papers of 2020 to 2022 use 1.0 to 2.0.

    Returns:
        (tokens, k), a new tensor.

    Raises:
        CourseError: if the factor is not above 0.

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
    """Return the share of choices that were dropped."""
    return float((kept < 0).double().mean()) if kept.numel() else 0.0

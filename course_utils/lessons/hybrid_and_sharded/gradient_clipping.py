"""Clipping by the global norm, where no rank has the whole gradient: each number is squared once, wherever it lies."""

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist

EPSILON = 1e-6
"""Added to the norm before it divides, as torch does."""


def clip_over_mesh(
    cut: Sequence[torch.Tensor],
    replicated: Sequence[torch.Tensor],
    groups: Mapping[str, dist.ProcessGroup],
    max_norm: float,
) -> float:
    """Clip the gradients of a model that is divided over a mesh; return their norm before clipping.

    Let |g| be the norm of the whole model's gradient. Every gradient is multiplied in place by
    min(1, max_norm / (|g| + 1e-6)), which is the same number on all ranks. To find it, ranks send
    sums of squares, and no gradients.

    Args:
        cut: gradients of parameters that the tensor group has divided, so that each of its ranks
            has a different part. May be empty.
        replicated: gradients of parameters of which each rank of the tensor group has the same
            whole copy. May be empty.
        groups: this rank's group along "data", where all ranks have the same gradients already,
            along "pipeline", where each rank has different layers, and along "tensor".
        max_norm: above 0.

    Returns:
        |g| as a float, the same on all ranks.

    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks",
    algorithm 1; Shoeybi et al. 2019, "Megatron-LM", §3 (which parameters are replicated).
    """
    # All parts of what is cut count, but only one copy of what is replicated.
    # The sum over the stages comes last, because each stage has both.
    total = squares(cut)
    dist.all_reduce(total, group=groups["tensor"])
    total += squares(replicated)
    dist.all_reduce(total, group=groups["pipeline"])
    norm = total.sqrt().item()
    for gradient in (*cut, *replicated):
        gradient *= min(1.0, max_norm / (norm + EPSILON))
    return norm


def clip_alone(
    cut: Sequence[torch.Tensor],
    replicated: Sequence[torch.Tensor],
    groups: Mapping[str, dist.ProcessGroup],
    max_norm: float,
) -> float:
    """Clip by the norm of what this rank has, which is a mistake: it sends nothing and raises nothing."""
    norm = (squares(cut) + squares(replicated)).sqrt().item()
    for gradient in (*cut, *replicated):
        gradient *= min(1.0, max_norm / (norm + EPSILON))
    return norm


def squares(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sum of the squares of all numbers, (1,), in float64; 0 for an empty list."""
    return torch.stack(
        [torch.zeros((), dtype=torch.float64), *(gradient.double().square().sum() for gradient in gradients)]
    ).sum(0, keepdim=True)

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
    """Clip the gradients of a model that is cut over the ranks of a mesh, in place; return their
    norm before.

    The norm is that of the whole model's gradient, g: where it is above `max_norm`, every number is
    multiplied by max_norm / (|g| + 1e-6), the same on all ranks. Ranks send sums of squares, no
    gradients.

    Args:
        cut: of parameters of which each rank of the tensor group has another part; may be empty.
        replicated: of parameters that all ranks of the tensor group have whole and equal; may be
            empty.
        groups: this rank's group along "data" (equal gradients on all its ranks: they are already
            added up), "pipeline" (each rank has other layers) and "tensor".
        max_norm: above 0.

    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks",
    algorithm 1; Shoeybi et al. 2019, "Megatron-LM", §3 (which parameters are replicated).
    """
    # What is cut: every part counts. What is replicated: one copy counts. Then the stages' sums together.
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
    """The mistake: each rank clips by the norm of what it has itself. Moves nothing, raises nothing."""
    norm = (squares(cut) + squares(replicated)).sqrt().item()
    for gradient in (*cut, *replicated):
        gradient *= min(1.0, max_norm / (norm + EPSILON))
    return norm


def squares(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of all numbers' squares, (1,), in float64: 0 for no gradient."""
    return torch.stack(
        [torch.zeros((), dtype=torch.float64), *(gradient.double().square().sum() for gradient in gradients)]
    ).sum(0, keepdim=True)

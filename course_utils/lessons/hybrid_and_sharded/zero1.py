"""ZeRO, stage 1, by hand: no two ranks keep the same part of Adam's state.

All ranks have all parameters and make a whole gradient; each updates only its part of the parameters.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.functional import pad

Betas = tuple[float, float]
BETAS, EPS = (0.9, 0.999), 1e-8
"""Adam's usual ones, as in `torch.optim.Adam`."""


@dataclass
class AdamShard:
    """What one rank keeps of Adam's state: means and squares of its part, and how many steps."""

    mean: torch.Tensor
    square: torch.Tensor
    steps: int = 0

    def change(self, gradient: torch.Tensor, rate: float, betas: Betas = BETAS, eps: float = EPS) -> torch.Tensor:
        """Update mean, square and steps by one step; return what Adam adds to this part of the parameters.

        Args:
            gradient: the mean gradient of this part, of the same shape.

        Source: Kingma & Ba 2015, algorithm 1, as in lesson 2.
        """
        self.steps += 1
        self.mean.lerp_(gradient, 1 - betas[0])
        self.square.lerp_(gradient**2, 1 - betas[1])
        mean = self.mean / (1 - betas[0] ** self.steps)
        square = self.square / (1 - betas[1] ** self.steps)
        return -rate * mean / (square.sqrt() + eps)


def shard_length(parameters: int, ranks: int) -> int:
    """How many numbers of a vector each rank owns; the last rank's part may reach over the end."""
    return -(-parameters // ranks)


def adam_shard(parameters: torch.Tensor) -> AdamShard:
    """A state of zeros for this rank's part of a vector of parameters."""
    length = shard_length(parameters.numel(), dist.get_world_size())
    return AdamShard(parameters.new_zeros(length), parameters.new_zeros(length))


@torch.no_grad()
def zero1_step(
    parameters: torch.Tensor,
    gradient: torch.Tensor,
    state: AdamShard,
    rate: float = 0.001,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Do one step of Adam in which each rank updates only its own part of the parameters.

    The vector of parameters is cut into P equal parts for P ranks. Rank r owns the r-th part, and
    is the only rank that keeps Adam's state for it. A reduce-scatter gives each rank its part of
    the summed gradient, and an all-gather gives every rank all updated parts. Together they send
    as many bytes as one all-reduce.

    Args:
        parameters: (n,), equal on all ranks. Changed in place, and equal again afterwards. n need
            not be a multiple of P: the last part is filled up with zeros.
        gradient: (n,), this rank's own, not changed. The step uses the mean over all ranks.
        state: from `adam_shard(parameters)`. Call `state.change` once: it updates the state, and
            returns what is to be added to this rank's part.
        rate, betas, eps: of Adam, for `state.change`.

    Source: Rajbhandari et al. 2020, "ZeRO", §5.1 and §7.1; Adam as in lesson 2.
    """
    ranks, rank, total = dist.get_world_size(), dist.get_rank(), parameters.numel()
    # A rank needs the summed gradient of its own part only,
    # so a reduce-scatter is enough. It is the first half of an all-reduce.
    length = state.mean.numel()
    filled = pad(gradient, (0, ranks * length - total))
    mine = torch.empty_like(state.mean)
    dist.reduce_scatter_single(mine, filled)

    # Adam updates this part, with the only copy of its state.
    own = pad(parameters, (0, ranks * length - total))[rank * length : (rank + 1) * length]
    own = own + state.change(mine / ranks, rate, betas, eps)

    # The second half of an all-reduce gives every rank all updated parts.
    everything = torch.empty_like(filled)
    dist.all_gather_single(everything, own)
    parameters.copy_(everything[:total])

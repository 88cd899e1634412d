"""ZeRO: data parallelism in which no two ranks keep the same thing. By hand, and what each stage saves and costs.

Parameters, gradients and the optimizer's state are the same on every rank of a data-parallel training. Stage 1 divides
the optimizer's state among the ranks, stage 2 the gradients too, stage 3 also the parameters.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.functional import pad

from course_utils.errors import CourseError


@dataclass
class AdamShard:
    """What one rank keeps of Adam's state: means and squares of its part of the parameters, and how many steps."""

    mean: torch.Tensor
    square: torch.Tensor
    steps: int = 0


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
    """One step of Adam, of which each rank does its part: reduce-scatter gradients, update, all-gather parameters.

    Rank r owns the r-th of P equal parts of the vector, and is the only one that keeps Adam's state for it. As much
    moves as in an all-reduce, which is these two collectives one after the other.

    Args:
        parameters: (n,), equal on all ranks; changed in place, equal again. n need not be a multiple of P.
        gradient: (n,), this rank's; left as it is. The step is made with the mean over the ranks.
        state: of `adam_shard(parameters)`; changed.

    Source: Rajbhandari et al. 2020, "ZeRO", §5.1 and §7.1; Adam as in lesson 2.
    """
    ranks, rank, total = dist.get_world_size(), dist.get_rank(), parameters.numel()
    length = state.mean.numel()
    filled = pad(gradient, (0, ranks * length - total))
    mine = torch.empty_like(state.mean)
    dist.reduce_scatter_single(mine, filled)
    mine /= ranks

    state.steps += 1
    state.mean.lerp_(mine, 1 - betas[0])
    state.square.lerp_(mine**2, 1 - betas[1])
    mean = state.mean / (1 - betas[0] ** state.steps)
    square = state.square / (1 - betas[1] ** state.steps)
    own = pad(parameters, (0, ranks * length - total))[rank * length : (rank + 1) * length]
    own = own - rate * mean / (square.sqrt() + eps)

    everything = torch.empty_like(filled)
    dist.all_gather_single(everything, own)
    parameters.copy_(everything[:total])


def zero_memory(
    parameters: float,
    ranks: int,
    stage: int,
    parameter_bytes: float = 2,
    gradient_bytes: float = 2,
    state_bytes: float = 12,
) -> float:
    """Bytes of parameters, gradients and optimizer state on each rank.

    Args:
        parameters: how many the model has.
        stage: 0 (plain data parallelism), 1, 2 or 3.
        parameter_bytes, gradient_bytes, state_bytes: for one parameter. In mixed precision with Adam, as the paper
            counts: 2 and 2 in half precision; 12 for the parameter, its mean and its square in single precision.

    Raises:
        CourseError: no such stage, or fewer than one rank.

    Source: Rajbhandari et al. 2020, §3.1 and figure 1.
    """
    _known(stage, ranks)
    divided = [state_bytes, gradient_bytes, parameter_bytes][:stage]
    whole = [state_bytes, gradient_bytes, parameter_bytes][stage:]
    return parameters * (sum(whole) + sum(divided) / ranks)


def zero_traffic(parameters: float, ranks: int, stage: int, element_bytes: float = 2) -> float:
    """Bytes that each rank sends in a step, with the best algorithms (rings).

    Stages 0, 1, 2: a reduce-scatter and an all-gather, together an all-reduce: 2 (P − 1)/P of the model. Stage 3
    gathers the parameters twice, before the forward and before the backward pass: 3 (P − 1)/P.

    Args:
        element_bytes: of one number as it travels.

    Source: Rajbhandari et al. 2020, §7.2.
    """
    _known(stage, ranks)
    return (3 if stage == 3 else 2) * (ranks - 1) / ranks * parameters * element_bytes


def fits(parameters: float, ranks: int, stage: int, memory: float, activations: float = 0.0, **bytes_of: float) -> bool:
    """Whether a model and one rank's activations fit into the memory of each rank.

    Args:
        memory, activations: bytes.
        bytes_of: as for `zero_memory`.
    """
    return zero_memory(parameters, ranks, stage, **bytes_of) + activations <= memory


def _known(stage: int, ranks: int) -> None:
    if stage not in (0, 1, 2, 3):
        raise CourseError(f"ZeRO has the stages 0, 1, 2 and 3, not {stage!r}.")
    if ranks < 1:
        raise CourseError(f"There is at least one rank, not {ranks!r}.")

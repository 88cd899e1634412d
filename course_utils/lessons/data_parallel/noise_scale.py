"""How large a batch pays: the noise of gradients beside their size, which data-parallel ranks have for free.

A rank's own gradient is that of a small batch, the mean of all ranks' that of a large one. The less they differ, the
less is left to gain from a larger batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from course_utils.lessons.data_parallel.gradients import average_gradients
from course_utils.lessons.data_parallel.shards import shard_indices
from course_utils.lessons.data_parallel.training import (
    Data,
    History,
    Sgd,
    batches,
    digits_mlp,
    train_parallel,
    train_step,
)


@dataclass(frozen=True)
class SquaredNorms:
    """Squared lengths of the gradients of one step.

    Attributes:
        small: of a rank's own gradient, the mean over all ranks.
        large: of the mean of all ranks' gradients.
    """

    small: float
    large: float


def signal_and_noise(small: float, large: float, small_batch: int, large_batch: int) -> tuple[float, float]:
    """|G|² and tr(Σ) from the squared lengths of two gradients: of the true gradient, and of one example's noise.

    A gradient of B examples has |G_B|² = |G|² + tr(Σ) / B on average. Two sizes of batch give two equations; their
    solution is right on average (unbiased), though one step's may be far off, or even below 0: take means over steps.

    Args:
        small, large: |G_B|² with the small and with the large batch.
        small_batch, large_batch: examples in each; the first is smaller.

    Raises:
        ValueError: the first batch is not smaller, or empty.

    Source: McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", appendix A.1.
    """
    if not 0 < small_batch < large_batch:
        raise ValueError(f"the small batch must be smaller than the large one, not {small_batch} to {large_batch}")
    signal = (large_batch * large - small_batch * small) / (large_batch - small_batch)
    noise = (small - large) / (1 / small_batch - 1 / large_batch)
    return signal, noise


def simple_noise_scale(norms: Sequence[SquaredNorms], small_batch: int, large_batch: int) -> float:
    """tr(Σ) / |G|² in examples, from the mean lengths of several steps: of about this size is the critical batch.

    Infinite where the steps say nothing of the gradient but noise.

    Source: McCandlish et al. 2018, equation 2.9; means before the division, as in appendix A.1.
    """
    small = sum(norm.small for norm in norms) / len(norms)
    large = sum(norm.large for norm in norms) / len(norms)
    signal, noise = signal_and_noise(small, large, small_batch, large_batch)
    return noise / signal if signal > 0 else float("inf")


def predicted_steps(batch_size: float, noise_scale: float, fewest: float) -> float:
    """Steps to a loss with this batch: the fewest, with an endless batch, times 1 + noise scale / batch.

    Source: McCandlish et al. 2018, equation 2.7 and §2.3, each batch with the rate that is best for it.
    """
    return fewest * (1 + noise_scale / batch_size)


def squared_norm(model: nn.Module) -> torch.Tensor:
    """The squared length of all gradients, one number."""
    return sum(parameter.grad.square().sum() for parameter in model.parameters())


def train_and_measure(data: Data, **options) -> tuple[History, list[SquaredNorms]]:
    """`train_parallel`, and the squared lengths of its gradients at each step; one number more travels a step.

    Args:
        options: of `train_parallel`.
    """
    norms: list[SquaredNorms] = []

    def average_and_measure(model: nn.Module) -> None:
        small = squared_norm(model)
        dist.all_reduce(small)
        average_gradients(model)
        norms.append(SquaredNorms(small.item() / dist.get_world_size(), squared_norm(model).item()))

    return train_parallel(data, synchronise=average_and_measure, **options), norms


def steps_to_loss(data: Data, batch_size: int, rate: float, target: float, most: int = 400) -> int | None:
    """After how many steps one process reaches this loss on all its training images; None if not within `most`."""
    x, y = data[:2]
    model = digits_mlp(seed=0).to(x).train()
    stepper, step, epoch = Sgd(model.parameters(), rate), 0, 0
    while step < most:
        for batch in batches(shard_indices(len(x), 0, 1, epoch, 0), batch_size):
            train_step(model, stepper, x[batch], y[batch])
            step += 1
            with torch.no_grad():
                if functional.cross_entropy(model(x), y).item() <= target:
                    return step
        epoch += 1
    return None


def fewest_steps(data: Data, batch_size: int, rates: Sequence[float], target: float, most: int = 400) -> int | None:
    """The fewest steps to this loss over several learning rates; None where none reaches it within `most`."""
    best: int | None = None
    for rate in rates:
        steps = steps_to_loss(data, batch_size, rate, target, best or most)
        best = steps or best
    return best

"""The network of the report on parallel strategies, trained three ways: by one process, as a hybrid, as the report did.

Its dropout is left out, so that the ways can be compared digit by digit; its MNIST is our digits, enlarged.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from course_utils.lessons.data_parallel.training import Data, Sgd, batches
from course_utils.lessons.hybrid_and_sharded.hybrid_step import drifting_gradients, equal_shards, hybrid_step

PIXELS = 28
"""Height and width of an image."""
Way = Literal["serial", "hybrid", "report"]


@dataclass
class RankTraining:
    """What one rank remembers of its training.

    Attributes:
        losses: before each step; of the whole batch ("serial", and "hybrid" on rank 0), or of this rank's shard.
        convolutions, dense: the weights after each step, one vector each; (steps, weights).
        accuracy: the share of the test images that this rank's two parts recognise together at the end.
    """

    losses: list[float]
    convolutions: torch.Tensor
    dense: torch.Tensor
    accuracy: float


def report_network() -> tuple[nn.Module, nn.Module]:
    """Convolutions (batch, 1, 28, 28) → (batch, 320), and fully connected layers → (batch, 10).

    Source: the report's appendix, `Net`.
    """
    torch.manual_seed(0)
    convolutions = nn.Sequential(
        nn.Conv2d(1, 10, kernel_size=5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, kernel_size=5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
    )
    return convolutions, nn.Sequential(nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


def enlarged(x: torch.Tensor) -> torch.Tensor:
    """Digits (count, 64) as images (count, 1, 28, 28)."""
    return functional.interpolate(x.view(-1, 1, 8, 8), size=PIXELS, mode="bilinear", align_corners=False)


def train_network(data: Data, variant: Way, steps: int = 66, batch_size: int = 64, rate: float = 0.12) -> RankTraining:
    """Train `report_network` with plain SGD on the digits, in their dtype, batch after batch in their order.

    Moves what `hybrid_step` or `drifting_gradients` moves; "serial" moves nothing and needs no group.

    Args:
        batch_size: the *global* batch; each rank takes its share, in the order of the ranks.

    Raises:
        CourseError: the batch cannot be dealt out evenly.
    """
    ranks, rank = (1, 0) if variant == "serial" else (dist.get_world_size(), dist.get_rank())
    equal_shards(batch_size, ranks)
    train_x, train_y, test_x, test_y = data
    convolutions, dense = (part.to(train_x.dtype) for part in report_network())
    optimizer = Sgd([*convolutions.parameters(), *dense.parameters()], rate)
    passes = -(-steps // (len(train_x) // batch_size))
    order = [batch for _ in range(passes) for batch in batches(torch.arange(len(train_x)), batch_size)]
    losses, kept = [], []
    for batch in order[:steps]:
        mine = batch.chunk(ranks)[rank]
        losses.append(_gradients(variant, convolutions, dense, enlarged(train_x[mine]), train_y[mine]))
        optimizer.step()
        optimizer.zero_grad()
        kept.append([nn.utils.parameters_to_vector(part.parameters()).detach() for part in (convolutions, dense)])
    with torch.no_grad():
        right = (dense(convolutions(enlarged(test_x))).argmax(dim=1) == test_y).double().mean().item()
    first, second = (torch.stack(part) for part in zip(*kept, strict=True))
    return RankTraining(losses, first, second, right)


def _gradients(variant: Way, convolutions: nn.Module, dense: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    if variant == "hybrid":
        return hybrid_step(convolutions, dense, x, y, functional.cross_entropy)
    loss = functional.cross_entropy(dense(convolutions(x)), y)
    loss.backward()
    if variant == "report":
        drifting_gradients(convolutions, dense)
    return loss.item()

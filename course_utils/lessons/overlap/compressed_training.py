"""Training with compressed gradients on the ranks: what it sends, how long a step takes, what the network learns."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.distributed as dist
from torch import nn

from course_utils.lessons.data_parallel.replicas import Replica, torch_ddp, train_replicas
from course_utils.lessons.data_parallel.training import Data, wide_mlp
from course_utils.lessons.overlap.compression import compress
from course_utils.lessons.overlap.step_times import step_seconds
from course_utils.trace.kernel_counters import node_bytes
from course_utils.trace.recorder import recorder


@dataclass(frozen=True)
class Compressed:
    """What one rank saw of its training.

    Attributes:
        bytes_per_step: that left this rank's node, by the kernel's counter; None where the ranks share memory.
        step: the median seconds of a step.
        accuracy: the share of test images recognised at the end.
        losses: of each step, on this rank's share of the batch.
    """

    bytes_per_step: float | None
    step: float
    accuracy: float
    losses: Sequence[float] = ()


def train_compressed(
    data: Data, how: str, epochs: int = 2, batch_size: int = 128, rate: float = 0.2, **settings: float
) -> Compressed:
    """Train `wide_mlp` with `DistributedDataParallel` and one of the ways of `compression.compress`, on every rank.

    Args:
        batch_size: of all ranks together.
        settings: of `compress`.
    """
    before: list[tuple[int, int] | None] = []

    def replicate(model: nn.Module) -> Replica:
        replica = torch_ddp(model)
        compress(replica.module, how, **settings)
        dist.barrier()
        before.append(node_bytes())
        return replica

    history = train_replicas(data, replicate, wide_mlp, epochs=epochs, batch_size=batch_size, rate=rate)
    after = node_bytes()
    sent = (after[0] - before[0][0]) / len(history.losses) if after and before[0] else None
    seconds = step_seconds(recorder.events, dist.get_rank())
    return Compressed(sent, seconds, history.test_accuracy, history.losses)

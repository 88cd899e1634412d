"""What a training on several ranks is made of, set up on each of them before the first step."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from course_utils.data import digits
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.training import accuracy
from course_utils.lessons.gpu_nodes.checkpoint import CHECKPOINT, Place, keep_to_settings
from course_utils.lessons.gpu_nodes.launch import Group, process_group
from course_utils.lessons.gpu_nodes.stop_signals import ON_GPUS, StopSignals
from course_utils.lessons.gpu_nodes.training_settings import FIXED, Settings
from course_utils.trace.recorder import phase


@dataclass(frozen=True)
class Trained:
    """How a training went; the same on all ranks.

    Attributes:
        losses: on all training images, at the end of each epoch, those before a restart too.
        test_accuracy: the share of test images recognised at the end.
        steps: done in all.
        resumed_at: the step after which this run went on; 0 for one that began at the beginning.
        nodes: where each rank was.
        backend: what carried the gradients.
    """

    losses: list[float]
    test_accuracy: float
    steps: int
    resumed_at: int
    nodes: tuple[str, ...]
    backend: str

    @property
    def loss(self) -> float:
        """On all training images, at the end."""
        return self.losses[-1]


@contextlib.contextmanager
def training_of(settings: Settings) -> "Iterator[Training]":
    """Meet the other processes, listen for signals, and set everything up. Signals end nothing inside.

    Raises:
        CourseError: the batch does not divide among the ranks, the folder holds the checkpoint of another training, or
            see `process_group`.
    """
    with process_group() as group, StopSignals(ON_GPUS if group.backend == "nccl" else 1) as stop:
        keep_to_settings(Path(settings.folder), {name: getattr(settings, name) for name in FIXED})
        yield Training(settings, group, stop)


class Training:
    """A network, its optimizer and its data on one of several ranks. Nothing is read from a checkpoint here.

    Attributes:
        rank: of this process.
        model: the network by itself; its weights are the same on all ranks.
        optimizer: SGD with momentum, of the model's weights.
        sampler: deals the images out anew in each epoch, which `sampler.set_epoch(epoch)` tells it.
        stop: hears signals; `stop.agreed()` and `stop.heard`.
        file: where the checkpoint belongs.
    """

    def __init__(self, settings: Settings, group: Group, stop: StopSignals) -> None:
        self.settings, self.group, self.stop, self.rank = settings, group, stop, group.rank
        self.file = Path(settings.folder) / CHECKPOINT
        self._train_x, self._train_y, self._test_x, self._test_y = (tensor.to(group.device) for tensor in digits())
        self.sampler = sampler_for(len(self._train_x), settings, group)
        self.model = network(settings).to(group.device)
        self._module = replica(self.model, settings, group)
        self.optimizer = torch.optim.SGD(self.model.parameters(), settings.rate, settings.momentum)
        torch.manual_seed(settings.seed + group.rank)

    def batches(self) -> Sequence[torch.Tensor]:
        """This rank's share of every global batch of the sampler's epoch; the last one, not full, is left out."""
        share = self.settings.batch_size // self.group.world_size
        whole = len(self._train_x) // self.settings.batch_size
        return torch.tensor(list(self.sampler), device=self.group.device).split(share)[:whole]

    def step(self, batch: torch.Tensor, progress: Place) -> None:
        """One step on this rank's share of a global batch; `progress` moves on by one batch.

        DDP averages the gradients: one all-reduce of each bucket over NCCL or gloo. Nothing in it makes the CPU wait
        for the GPU.
        """
        train_step(self._module, self.optimizer, self._train_x[batch], self._train_y[batch], self.settings)
        progress.batch, progress.steps = progress.batch + 1, progress.steps + 1
        fail_once(self.settings, self.group, progress)

    def loss(self) -> float:
        """The loss on all training images, at the end of an epoch; rank 0 prints it."""
        found = loss_on(self.model, self._train_x, self._train_y)
        self.say(f"epoch {self.sampler.epoch + 1} of {self.settings.epochs}: loss {found:.6f}")
        return found

    def trained(self, progress: Place, resumed_at: int) -> Trained:
        """How it went, from its progress at the end and the number of steps that were done before this run."""
        found = accuracy(self.model, self._test_x, self._test_y)
        return Trained(progress.losses, found, progress.steps, resumed_at, self.group.nodes, self.group.backend)

    def say(self, line: str) -> None:
        """Print a line, once for all ranks."""
        if self.rank == 0:
            print(line, flush=True)


def sampler_for(examples: int, settings: Settings, group: Group) -> DistributedSampler:
    """Deals the images out: the k-th batches of all ranks together are the k-th batch of one process.

    Raises:
        CourseError: the global batch does not divide among the ranks; the mean of their means would not be its mean.
    """
    if settings.batch_size % group.world_size:
        raise CourseError(
            f"A batch of {settings.batch_size} does not divide among {group.world_size} ranks. "
            f"Take --batch-size {group.world_size * max(1, settings.batch_size // group.world_size)}."
        )
    return DistributedSampler(range(examples), group.world_size, group.rank, seed=settings.seed)


def network(settings: Settings) -> nn.Module:
    """A network for 64 pixels and ten digits, with two hidden layers; the seed fixes its first weights."""
    torch.manual_seed(settings.seed)
    layers: list[nn.Module] = []
    for inputs in (64, settings.hidden):
        layers += [nn.Linear(inputs, settings.hidden), nn.ReLU(), nn.Dropout(settings.dropout)]
    return nn.Sequential(*layers, nn.Linear(settings.hidden, 10))


def replica(model: nn.Module, settings: Settings, group: Group) -> nn.Module:
    """The model with DDP around it, which averages gradients over the group that carries them.

    The compiler is asked for the model and not for DDP: around DDP it finds a torch.nn.Sequential called by torch's own
    code, which it leaves as it is, and would compile nothing (torch 2.13).
    """
    on_gpu = group.device.type == "cuda"
    inner = torch.compile(model) if settings.compile else model
    return DistributedDataParallel(
        inner, device_ids=[group.device.index] if on_gpu else None, process_group=group.gradients
    )


def train_step(
    module: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, settings: Settings
) -> None:
    """One step on this rank's share (x, y) of a batch, its phases recorded; the CPU waits nowhere for the GPU."""
    module.train()
    optimizer.zero_grad()
    with phase("forward"), torch.autocast(x.device.type, torch.bfloat16, enabled=settings.bf16):
        loss = cross_entropy(module(x), y)
    with phase("backward"):
        loss.backward()
    with phase("step"):
        optimizer.step()
    time.sleep(settings.pause)


def loss_on(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """The mean loss on all of `x`, in float32, without dropout. Every rank computes the same."""
    model.eval()
    with torch.no_grad():
        return cross_entropy(model(x), y).item()


def fail_once(settings: Settings, group: Group, progress: Place) -> None:
    """End the last rank as a failing node would, where `die_at` says so, and only in the first try."""
    if progress.steps == settings.die_at and group.rank == group.world_size - 1 and not group.restarts:
        print(f"rank {group.rank} kills itself after step {progress.steps}, as --die-at says", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

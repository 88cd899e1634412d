"""Programs that strategies became, run on ranks: their losses, their gradients, and the seconds of a step."""

import contextlib
import copy
import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.measuring import by_turns
from course_utils.trace.torch.torch_distributed import unrecorded

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

Batch = tuple[torch.Tensor, torch.Tensor]
Build = Callable[[], nn.Module]
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of mallopt, in glibc's malloc.h."""
DDP = "DDP"
"""In the place of a program: torch's `DistributedDataParallel`."""


def keep_freed_memory() -> None:
    """Let this process keep what it frees: otherwise each step's first operators wait for memory, now and then.

    glibc gives much freed memory back to the system, which clears each page again before it is used: several
    milliseconds a step. Training on GPUs keeps it too, in torch's caching allocator. Elsewhere nothing changes.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def loaded(text: str) -> ModuleType:
    """A program as a module, without its being run."""
    module = ModuleType("strategy_program")
    exec(compile(text, "strategy_program.py", "exec"), module.__dict__)
    return module


def parallel_model(text: str, model: nn.Module) -> nn.Module:
    """One rank's part of the model, as a program cuts it."""
    module = loaded(text)
    made = [parallel for name, parallel in vars(module).items() if name.startswith("Parallel")]
    return made[0](model)


def steps(
    texts: Sequence[str],
    build: Build,
    batch: Callable[[], Batch],
    rounds: int,
    warm_up: int = 1,
) -> list[list[float]]:
    """On every rank: the seconds of one training step of each program, again and again by turns.

    A step: forward, backward with the sums of gradients, and the change of the weights. All ranks meet before each.

    Args:
        texts: programs, or `DDP`.
        build, batch: give equal models and batches on all ranks; the programs share one model, whose weights change.
        rounds: that count; `warm_up` rounds go before them.
    """
    keep_freed_memory()
    model, (inputs, labels) = build(), batch()
    with unrecorded():
        parts = [_TorchDdp(model) if text == DDP else parallel_model(text, model) for text in texts]
        steps = {number: partial(_step, part, inputs, labels) for number, part in enumerate(parts)}
        return list(by_turns(steps, rounds, warm_up).values())


def _step(part: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    optimizer = Sgd(part.parameters(), 1e-3)
    dist.barrier()
    begin = time.perf_counter()
    part(inputs, labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - begin


class _TorchDdp(nn.Module):
    """Data parallelism by torch's own module: each rank's share of the batch, gradients averaged behind the scenes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.module = DistributedDataParallel(copy.deepcopy(model))  # its hooks must not meet the other programs

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss of this rank's share."""
        rank, ranks = dist.get_rank(), dist.get_world_size()
        return cross_entropy(self.module(inputs.chunk(ranks)[rank]), labels.chunk(ranks)[rank])


def train_program(ranks: "Ranks", text: str, build: Build, batches: Sequence[Batch], rate: float = 0.01) -> list[float]:
    """Run a program's own training on ranks; returns the loss of each whole batch, which all ranks know.

    Args:
        build: gives equal models on all ranks.
    """
    return ranks.run(_trained, text, build, batches, rate, ranks=ranks_needed(text), backend="gloo").results[0]


def _trained(text: str, build: Build, batches: Sequence[Batch], rate: float) -> list[float]:
    return loaded(text).train(build(), batches, rate)


def ranks_needed(text: str) -> int:
    """For how many ranks a program is."""
    return int(text.partition("--nproc-per-node=")[2].split()[0])


def train_serial(model: nn.Module, batches: Sequence[Batch], rate: float = 0.01) -> list[float]:
    """The same training in one process; returns the loss of each batch."""
    optimizer, losses = Sgd(model.parameters(), rate), []
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

"""Training steps cut into forward, backward, exposed communication and optimizer, with what they cost in bytes and CPU.

*Exposed* communication is what a step waits for: the time from the last gradient of the backward pass to the end of
the exchange. What travelled before was hidden. Bytes are those that the kernel counted on the rank's own interface.
"""

import inspect
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.autodiff_and_optimizers.ready_order import watch_gradients
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.replicas import WAYS, Replica, unsynchronised
from course_utils.lessons.data_parallel.training import Sgd
from course_utils.trace.kernel_counters import node_bytes
from course_utils.trace.recorder import phase
from course_utils.vgg import random_images, vgg11

if TYPE_CHECKING:
    from course_utils.ranks.run import Run

Way = str | Callable[[nn.Module], Replica]
"""How replicas are kept equal: a name, or a function that makes one of a model, such as lesson 7's `overlapped`."""
ONE_PROCESS = "one process"
"""Task 1: no replicas, nothing to send."""
PARTS = ("forward", "backward", "communication", "optimizer")
CLASSES = 10


@dataclass(frozen=True)
class StepWork:
    """What is trained: VGG-11 on made-up images, as how long a step takes does not depend on what they show.

    Attributes:
        width: of the network: 1 is the report's, with 9.2 million parameters; 0.25 has 1/16 of them.
        images: in a global batch, divided among the ranks.
        steps: that count; `warm_up` steps go before them.
        bucket_bytes: for the ways that have buckets; None: their own size.
    """

    width: float = 0.25
    images: int = 48
    steps: int = 4
    warm_up: int = 1
    bucket_bytes: int | None = None
    norm: bool = True
    seed: int = 0


@dataclass
class RankSteps:
    """What one rank measured of its steps.

    Attributes:
        parts: part → seconds of each step.
        losses: before each step, on this rank's share of the batch.
        began, ended: readings of `time.perf_counter`, which all processes of a machine share.
        user, system: CPU seconds, all threads: the program's, and the kernel's for it.
        sent, received: bytes that passed this node's interface; None where there is no node.
        gradient_bytes: of all gradients together.
    """

    parts: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})
    losses: list[float] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0
    user: float = 0.0
    system: float = 0.0
    sent: int | None = None
    received: int | None = None
    gradient_bytes: int = 0


def name_of(method: Way) -> str:
    """What pictures and records call a way: its name in `WAYS`, or the name of the function."""
    return method if isinstance(method, str) else method.__name__


def timed_steps(method: Way, work: StepWork) -> RankSteps:
    """Train for some steps on every rank of torch.distributed's default group; each returns what it measured.

    Every rank draws first weights of its own, and rank 0's are broadcast. All start the steps that count together.

    Args:
        method: a key of `replicas.WAYS`, "one process", or a function as those of `WAYS`.

    Raises:
        CourseError: see `check_work`.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    check_work(method, work, world_size)
    model = vgg11(work.width, CLASSES, work.norm, seed=work.seed + rank).train()
    broadcast_parameters(model)
    replica = replica_of(method, model, work)
    optimizer = Sgd(model.parameters(), 0.01)
    x, y = random_images(work.images // world_size, seed=work.seed + 1 + rank)
    for _ in range(work.warm_up):
        one_step(model, replica, optimizer, x, y, RankSteps())
    taken = RankSteps(
        gradient_bytes=sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    )
    dist.barrier()
    before, bytes_before = os.times(), node_bytes()
    taken.began = time.perf_counter()
    for _ in range(work.steps):
        one_step(model, replica, optimizer, x, y, taken)
    taken.ended = time.perf_counter()
    after, bytes_after = os.times(), node_bytes()
    taken.user, taken.system = after.user - before.user, after.system - before.system
    if bytes_before and bytes_after:
        taken.sent, taken.received = (late - early for early, late in zip(bytes_before, bytes_after, strict=True))
    return taken


def check_work(method: Way, work: StepWork, world_size: int) -> None:
    """Can this be done?

    Raises:
        CourseError: there is no such way, the images do not divide among the ranks, or there is nothing to do.
    """
    if isinstance(method, str) and method not in WAYS and (method != ONE_PROCESS or world_size > 1):
        names = ", ".join(map(repr, WAYS))
        raise CourseError(f"There is no way {method!r} for {world_size} ranks. Take one of {names}, or a function.")
    if work.images < 1 or work.steps < 1 or work.width <= 0:
        raise CourseError("images, steps and width must be above zero.")
    if work.images % world_size:
        raise CourseError(f"{work.images} images do not divide among {world_size} ranks. Choose a multiple of them.")


def replica_of(method: Way, model: nn.Module, work: StepWork) -> Replica:
    """The model behind one of the ways."""
    if method == ONE_PROCESS:
        return unsynchronised(model)
    make = WAYS[method] if isinstance(method, str) else method
    if work.bucket_bytes and "bucket_bytes" in inspect.signature(make).parameters:
        return make(model, bucket_bytes=work.bucket_bytes)
    return make(model)


def one_step(
    model: nn.Module,
    replica: Replica,
    optimizer: Sgd,
    x: torch.Tensor,
    y: torch.Tensor,
    into: RankSteps,
) -> None:
    """One training step; the seconds of its parts are added to `into`, and its phases recorded in the trace.

    The backward pass ends with its last gradient: `DistributedDataParallel` waits for messages inside `backward()`.
    """
    optimizer.zero_grad()
    began = time.perf_counter()
    with phase("forward"):
        loss = cross_entropy(replica.module(x), y)
    forward = time.perf_counter()
    with phase("backward"), watch_gradients(model) as ready:
        loss.backward()
    last = forward + max((gradient.seconds for gradient in ready), default=time.perf_counter() - forward)
    with phase("communication"):
        replica.finish()
    exchanged = time.perf_counter()
    with phase("step"):
        optimizer.step()
    ends = (began, forward, last, exchanged, time.perf_counter())
    for part, start, end in zip(PARTS, ends, ends[1:], strict=False):
        into.parts[part].append(end - start)
    into.losses.append(loss.item())


def last_step(run: "Run") -> "Run":
    """The same run with the events of its last step only: on each rank, from the beginning of its forward pass."""
    begins: dict[int, float] = {}
    for event in run.events:
        if (event.kind, event.name) == ("phase", "forward"):
            begins[event.rank] = max(event.start, begins.get(event.rank, event.start))
    return replace(run, events=[event for event in run.events if event.start >= begins.get(event.rank, math.inf)])

"""The trainer's throughput on VGG-11 at CIFAR size, a step at a time: each rung changes one thing."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import cross_entropy

from course_utils.measuring import by_turns
from course_utils.vgg import random_images, vgg11
from gpu.registry import Needs, Where, check, equal, needs_gpu
from gpu.speed import tf32
from gpu.timing import seconds
from workshop.bench.rows import ratio_row, value_row

Step = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Rung:
    """How a step is done.

    Attributes:
        kept: images lie on the device from the beginning; otherwise every step copies its batch there.
        rounded: TF32 allowed.
        bf16: matrix products and convolutions in bfloat16, by autocast.
        last: channels last in memory.
        compiled: by torch.compile.
    """

    kept: bool = False
    rounded: bool = False
    bf16: bool = False
    last: bool = False
    compiled: bool = False


LADDER = {
    "fp32": Rung(),
    "+ data on the device": Rung(kept=True),
    "+ tf32": Rung(kept=True, rounded=True),
    "+ bf16": Rung(kept=True, rounded=True, bf16=True),
    "+ channels last": Rung(kept=True, rounded=True, bf16=True, last=True),
}
TOP = LADDER["+ channels last"]


class Trainer:
    """A network and its batches, trained in one of these ways; each has the same first weights.

    Attributes:
        losses: of the steps so far, on the device: `.item()` would make every step wait.
    """

    def __init__(self, where: Where, rung: Rung) -> None:
        self.where, self.rung = where, rung
        form = torch.channels_last if rung.last else torch.contiguous_format
        self.model = vgg11(width=where.pick(1.0, 0.125), seed=0).to(where.device).to(memory_format=form).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.batch = where.pick(512, 4)
        x, y = random_images(4 * self.batch)
        x = x.to(memory_format=form)
        self.data = (x.to(where.device), y.to(where.device)) if rung.kept else (x, y)
        self.call = self.model
        if rung.compiled:  # on a processor Python's part only, without the compiler of kernels, which takes a minute
            self.call = torch.compile(self.model, backend=where.pick("inductor", "eager"))
        self.losses: list[torch.Tensor] = []

    def step(self) -> None:
        """One step on the next batch."""
        first = len(self.losses) % 4 * self.batch
        x, y = (one[first : first + self.batch].to(self.where.device) for one in self.data)
        with tf32(self.rung.rounded):
            self.optimizer.zero_grad()
            loss = self.loss(x, y)
            loss.backward()
            self.optimizer.step()
        self.losses.append(loss.detach())

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Of a batch, in the rung's precision."""
        kind = torch.autocast(self.where.device, torch.bfloat16) if self.rung.bf16 else nullcontext()
        with kind:
            return cross_entropy(self.call(x), y)


class Graphed(Trainer):
    """A whole step recorded once as a CUDA graph, and played again: one call in place of hundreds.

    Source: docs.pytorch.org, "CUDA semantics", whole-network capture.
    """

    def record(self) -> None:
        """Take the memory that every play uses, and record a step on it. Before, some steps on a side stream."""
        self.x, self.y = (one[: self.batch].clone() for one in self.data)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._work()
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept_loss = self._work()

    def _work(self) -> torch.Tensor:
        with tf32(self.rung.rounded):
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=self.rung.bf16, cache_enabled=False):
                loss = cross_entropy(self.model(self.x), self.y)
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def step(self) -> None:
        """The next batch into the graph's memory, and the graph once."""
        first = len(self.losses) % 4 * self.batch
        for place, one in zip((self.x, self.y), self.data, strict=True):
            place.copy_(one[first : first + self.batch])
        self.graph.replay()
        self.losses.append(self.kept_loss.clone())


def compared(where: Where, trainers: dict[str, Trainer]):
    """Images per second of each, by turns A B A B, each beside the one before it and the last beside the first.

    Raises:
        FloatingPointError: a loss is no number.
    """
    steps = where.pick(10, 1)
    for trainer in trainers.values():
        for _ in range(where.pick(10, 2)):
            trainer.step()
    taken = by_turns(
        {name: lambda one=one: seconds(where, one.step, steps) for name, one in trainers.items()}, where.pick(9, 3)
    )
    names = list(trainers)
    for name in names:
        rates = [trainers[name].batch / one for one in taken[name]]
        yield value_row("gpu", name, rates, "images/s", better="higher")
    for before, name in zip(names, names[1:], strict=False):
        yield ratio_row("gpu", f"{name}, gain", taken[before], taken[name], better="higher")
    for name, one in trainers.items():
        if not torch.stack(one.losses).isfinite().all():
            raise FloatingPointError(f"{name}: a loss is no number after {len(one.losses)} steps")
    if len(names) > 2:
        target = 1.0 if where.cuda and torch.cuda.get_device_capability() >= (8, 0) else None
        yield ratio_row(
            "gpu",
            f"{names[-1].strip('+ ')} / {names[0]}",
            taken[names[0]],
            taken[names[-1]],
            target=target,
            better="higher",
        )
    first = [one.losses[0].item() for one in trainers.values() if not isinstance(one, Graphed)]
    yield equal("first loss, largest difference / fp32's", max(abs(one / first[0] - 1) for one in first), target=0.02)


@check(13, shows="VGG-11's throughput: data kept on the device, TF32, bfloat16, channels last, one after the other")
def precision_ladder(where: Where):
    yield from compared(where, {name: Trainer(where, rung) for name, rung in LADDER.items()})


@check(13, 14, shows="what torch.compile gains on top of them")
def compiled(where: Where):
    if where.cuda:
        try:
            import triton  # noqa: F401 - the compiler's kernels for GPUs are written in it
        except ImportError:
            raise Needs("triton") from None
    rungs = {"all of the ladder": TOP, "+ torch.compile": replace(TOP, compiled=True)}
    yield from compared(where, {name: Trainer(where, rung) for name, rung in rungs.items()})


@check(13, 14, shows="what a CUDA graph of a whole step gains on top of them, where batches are small")
def cuda_graph(where: Where):
    needs_gpu(where)
    plain, graphed = Trainer(where, TOP), Graphed(where, TOP)
    for one in (plain, graphed):
        one.batch = 32
    graphed.record()
    yield from compared(where, {"batches of 32": plain, "+ CUDA graph": graphed})

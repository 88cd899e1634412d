"""Where the time of a training step goes, forward, backward or step, and how long an epoch would take.

The report for CS744 (Wisconsin, 2020, group 11) measured this for VGG-11 on CIFAR-10, in its figures 1 and 3. It calls
20 passes over 256 images an iteration. Here an iteration has fewer and smaller passes, and an epoch is calculated.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.hardware.machine_rates import using_threads
from course_utils.measuring import Measured
from course_utils.progress_bar import ProgressBar
from course_utils.words import count

EPOCH_IMAGES = 50_000
REPORT = "CS744 report, 2020"
PARTS = ("forward", "backward", "step")
PUBLISHED = {"GPU, GTX 1650 Super": 15.0, "CPU, 5 or 8 threads": 20 * 15.0, "CPU, 1 node (table 1)": 437.0}
"""Seconds of an epoch in the report. Its text gives figure 3's: "The GPU finishes 20 times faster than the CPU training
runs with a run time of 15 seconds": a GTX 1650 Super against a server with 5 threads and a PC with 8. By its table 1,
one worker of task 3 took 437 seconds."""


@dataclass
class Iteration:
    """Seconds of each part, added up over the passes of an iteration."""

    forward: float = 0.0
    backward: float = 0.0
    step: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """Part → seconds."""
        return {part: getattr(self, part) for part in PARTS}


@dataclass
class TimedTraining:
    """A training run cut into iterations.

    Attributes:
        iterations: one after the other.
        images: in each of them.
    """

    iterations: list[Iteration] = field(default_factory=list)
    images: int = 0

    @property
    def bars(self) -> dict[str, dict[str, float]]:
        """The parts of each iteration, by "iteration 1" and so on."""
        return {f"iteration {number}": iteration.parts for number, iteration in enumerate(self.iterations, start=1)}

    def ratio(self) -> Measured:
        """The backward pass's time over the forward pass's, in each iteration."""
        return Measured(tuple(iteration.backward / iteration.forward for iteration in self.iterations))

    def epoch(self) -> Measured:
        """The seconds that 50,000 images would take at the pace of each iteration."""
        factor = EPOCH_IMAGES / self.images
        return Measured(tuple(factor * sum(iteration.parts.values()) for iteration in self.iterations))


def time_training(
    model: nn.Module,
    iterations: int = 10,
    passes: int = 2,
    batch: int = 32,
    threads: int | None = None,
    device: str = "cpu",
) -> TimedTraining:
    """Train on made-up images of (3, 32, 32), and measure the time of forward, backward and step of plain SGD.

    The images are random, because the time of a step doesn't depend on what they show. The first pass doesn't count.

    Args:
        passes: in an iteration.
        batch: images in a pass.
        threads: None: one for each core.
        device: "cpu" or "cuda".
    """
    x, y = torch.randn(batch, 3, 32, 32, device=device), torch.arange(batch, device=device) % 10
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    timed = TimedTraining(images=passes * batch)
    with using_threads(threads), ProgressBar("timing training steps") as bar:
        one_pass(model, optimizer, x, y, Iteration())
        for _ in range(iterations):
            timed.iterations.append(Iteration())
            for _ in range(passes):
                bar.refresh()
                one_pass(model, optimizer, x, y, timed.iterations[-1])
    return timed


def one_pass(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, into: Iteration
) -> None:
    """Do one training step, and add its seconds to `into`."""
    optimizer.zero_grad()
    began = now(x)
    loss = cross_entropy(model(x), y)
    forward = now(x)
    loss.backward()
    backward = now(x)
    optimizer.step()
    into.forward += forward - began
    into.backward += backward - forward
    into.step += now(x) - backward


def now(x: torch.Tensor) -> float:
    """Return the time after x's device has done all its work; a GPU is still computing while Python goes on."""
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def epoch_bars(measured: Mapping[str, Measured], cores: int) -> dict[str, dict[str, Measured]]:
    """Return this machine's epochs, measured on "CPU" and perhaps "GPU", and the published ones as a second group."""
    published = {name: Measured((seconds,)) for name, seconds in PUBLISHED.items()}
    here = {count(cores, "core") if name == "CPU" else name: seconds for name, seconds in measured.items()}
    return {"this machine": here, REPORT: published}

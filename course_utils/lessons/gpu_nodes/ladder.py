"""A training step of VGG-11 on a GPU, made faster rung by rung: each rung of the ladder changes one thing.

How high a rung stands is counted in images per second, and as model FLOPs utilization (MFU): the floating-point
operations that the network asks for, per second, as a share of those that the GPU's data sheet promises for bfloat16.
Nothing but useful work counts, so a rung cannot gain by computing more. The rate that a product of two large matrices
reaches is measured by turns with the rungs; it takes the data sheet's place for a GPU that is not in `DATA_SHEETS`.

The first rungs switch TF32 off. PyTorch allows it in convolutions by default (`torch.backends.cudnn.allow_tf32`), so a
program that leaves the default is near the rung "+ TF32" already.

Source: Chowdhery et al. 2022, "PaLM", section 4.1 (MFU).
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from course_utils.gpu_seats import own_seat
from course_utils.lessons.gpu_nodes.product_rate import (
    PRODUCT,
    machine_text,
    mean_seconds,
    product_rate,
    shares_of_peak,
)
from course_utils.measuring import Measured, by_turns
from course_utils.progress_bar import ProgressBar
from course_utils.vgg import random_images, vgg11

BATCHES = 4
"""Different batches that are trained on in turn."""
IMAGES = 512
"""In a step, on all rungs but the last."""
LARGER = 8
"""How many times as many images a step has on the last rung."""
ROOM = 16e9
"""Bytes that a GPU's memory should have for the last rung, with all other rungs' networks in it."""
DATA_SHEETS = {"A100": 312e12, "H100 80GB HBM3": 989e12, "H200": 989e12}
"""A part of a GPU's name, as CUDA gives it → FLOP/s in products of bfloat16, dense. (NVIDIA, A100, H100 SXM, H200.)"""


@dataclass(frozen=True)
class Rung:
    """How a step is done.

    Attributes:
        pinned: the images lie in memory that the system never moves (page-locked), from which the GPU copies by itself:
            the processor only orders the copy, and goes on.
        kept: they lie in the GPU's memory from the beginning; otherwise each step copies its batch there.
        tf32: products and convolutions of float32 may round their inputs to 10 bits of mantissa.
        bf16: they are done in bfloat16, by autocast; weights stay in float32.
        channels_last: an image's channels lie side by side in memory, not its pixels.
        compiled: by torch.compile.
        graph: the whole step is recorded once as a CUDA graph, and then launched: one call instead of hundreds.
        larger: a step has so many times as many images, so all tensors but the weights grow.
    """

    pinned: bool = False
    kept: bool = False
    tf32: bool = False
    bf16: bool = False
    channels_last: bool = False
    compiled: bool = False
    graph: bool = False
    larger: int = 1


def _rungs() -> dict[str, Rung]:
    changes: dict[str, dict] = {
        "pinned memory": {"pinned": True},
        "data on the GPU": {"kept": True},
        "TF32": {"tf32": True},
        "bfloat16": {"bf16": True},
        "channels last": {"channels_last": True},
        "torch.compile": {"compiled": True},
        "CUDA graph": {"graph": True},
        "larger batch": {"larger": LARGER},
    }
    rungs = {"float32 without TF32": Rung()}
    for name, change in changes.items():
        rungs[f"+ {name}"] = replace(list(rungs.values())[-1], **change)
    return rungs


LADDER = _rungs()
"""Name → rung, from the ground up; each has all that those below it have."""
ONE_BATCH = {name: rung for name, rung in LADDER.items() if rung.larger == 1}
"""The rungs on which a step has the same images."""
QUICK = {name: replace(rung, compiled=False) for name, rung in ONE_BATCH.items() if not rung.compiled or rung.graph}
"""Of these, those without the compiler, which takes half a minute before its first step."""
RECORDED = Path(__file__).parent / "recorded" / "ladder.json"


class TrainingStep:
    """A step of VGG-11 on a batch that it is given, done as a rung says; each begins with the same weights.

    Attributes:
        form: how images and weights lie in memory.
        model, optimizer: VGG-11, on the device, and SGD with momentum.
    """

    def __init__(self, rung: Rung, device: str = "cuda", width: float = 1.0) -> None:
        self.rung, self.device = rung, device
        self.form = torch.channels_last if rung.channels_last else torch.contiguous_format
        self.model = vgg11(width=width, seed=0).to(device).to(memory_format=self.form).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self._call: Callable = self.model
        if rung.compiled:  # on a processor Python's part only: its compiler of kernels takes a minute
            self._call = torch.compile(self.model, backend="inductor" if device == "cuda" else "eager")

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Forward pass, backward pass and the weights' change; the loss, on the device.

        Args:
            x: (images, 3, 32, 32), on the device.
            y: (images,), their classes.
        """
        with tf32(self.rung.tf32):
            self.optimizer.zero_grad(set_to_none=True)
            # In a graph autocast must not keep its copies of the weights: a later play would find old ones.
            kind = torch.autocast(self.device, torch.bfloat16, cache_enabled=not self.rung.graph)
            with kind if self.rung.bf16 else nullcontext():
                loss = cross_entropy(self._call(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.detach()


class Trainer:
    """VGG-11 and its batches, trained in one of these ways.

    Attributes:
        batch: images in a step.
        losses: of the steps so far, on the device: `.item()` would make every step wait.

    Source of the recording: docs.pytorch.org, "CUDA semantics", whole-network capture.
    """

    def __init__(self, rung: Rung, device: str = "cuda", width: float = 1.0, batch: int = IMAGES) -> None:
        self.rung, self.device, self.batch = rung, device, rung.larger * batch
        self._work = TrainingStep(rung, device, width)
        self.model, self.optimizer = self._work.model, self._work.optimizer
        x, y = random_images(BATCHES * self.batch)
        x = x.to(memory_format=self._work.form)
        self._copies_itself = rung.pinned and device == "cuda"
        if rung.kept:
            self.data = x.to(device), y.to(device)
        else:
            self.data = (x.pin_memory(), y.pin_memory()) if self._copies_itself else (x, y)
        self.losses: list[torch.Tensor] = []
        self._graph: torch.cuda.CUDAGraph | None = None

    def step(self) -> None:
        """One step on the next batch."""
        batch = self._next_batch()
        if not self.rung.graph:
            self.losses.append(self._work(*batch))
            return
        if self._graph is None:
            self._record(*batch)
        for buffer, tensor in zip(self._places, batch, strict=True):
            buffer.copy_(tensor)
        self._graph.replay()
        self.losses.append(self._loss.clone())

    def _next_batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        first = len(self.losses) % BATCHES * self.batch
        part = slice(first, first + self.batch)
        x, y = (tensor[part].to(self.device, non_blocking=self._copies_itself) for tensor in self.data)
        return x, y

    def _record(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Take the memory that every play uses, and record a step on it. Before, three steps on a side stream."""
        self._places = x.clone(), y.clone()
        kept = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._work(*self._places)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = self._work(*self._places)
        with torch.no_grad():  # as if the steps before had not been
            for name, tensor in self.model.state_dict().items():
                tensor.copy_(kept[name])
            for state in self.optimizer.state.values():
                state["momentum_buffer"].zero_()

    def seconds(self, steps: int) -> float:
        """Of a step, the mean of this many."""
        return mean_seconds(self.step, steps, self.device)


class tf32:  # noqa: N801 - reads as `torch.autocast` does
    """Inside, products and convolutions of float32 may round their inputs to 10 bits of mantissa, or may not."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed

    def __enter__(self) -> None:
        self._before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.allowed

    def __exit__(self, *_: object) -> None:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = self._before


@dataclass(frozen=True)
class Climb:
    """What the rungs of a ladder reached.

    Attributes:
        machine: GPU and versions, in a line.
        date: the day.
        images: rung → images in a step.
        flops: floating-point operations that the network asks for with an image, forward and backward.
        peaks: FLOP/s of the GPU in a product of two matrices of bfloat16, measured by turns with the rungs, in each
            round; a single one counts for all rounds.
        seconds: rung → seconds of a step, in rounds that were measured by turns.
        first_loss: rung → the loss of its first step.
    """

    machine: str
    date: str
    images: dict[str, int]
    flops: float
    peaks: list[float]
    seconds: dict[str, list[float]]
    first_loss: dict[str, float]

    @property
    def origin(self) -> str:
        """Where and when it was measured, in a line."""
        return f"measured on {self.date}: {self.machine}; VGG-11, images of 32 × 32"

    @property
    def peak_on_paper(self) -> float | None:
        """FLOP/s in products of bfloat16 by the GPU's data sheet; None for a GPU that is not in `DATA_SHEETS`."""
        return next((flops for name, flops in DATA_SHEETS.items() if name in self.machine), None)

    def rates(self) -> dict[str, list[float]]:
        """Rung → images per second, in each round."""
        return {name: [self.images[name] / seconds for seconds in taken] for name, taken in self.seconds.items()}

    def image_seconds(self) -> dict[str, list[float]]:
        """Rung → seconds for each image, in each round: with these, rungs of different batches can be compared."""
        return {name: [seconds / self.images[name] for seconds in taken] for name, taken in self.seconds.items()}

    def mfu(self) -> dict[str, Measured]:
        """Rung → its FLOP/s as a share of the peak in each round: on paper if that is known, else in a product."""
        peaks = [self.peak_on_paper] if self.peak_on_paper else self.peaks
        return {name: shares_of_peak(self.flops, taken, peaks) for name, taken in self.image_seconds().items()}

    def product_shares(self) -> dict[str, Measured]:
        """Rung → its FLOP/s as a share of what the product reached in the same round."""
        return {name: shares_of_peak(self.flops, taken, self.peaks) for name, taken in self.image_seconds().items()}

    def write(self, file: Path) -> None:
        """Keep it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> "Climb":
        """One that was kept."""
        return cls(**json.loads(file.read_text()))


def recorded_climb() -> Climb:
    """Return the ladder that was recorded on an H100, all rungs but the last."""
    return Climb.read(RECORDED)


def recorded_batches() -> Climb:
    """Return the last two rungs as they were recorded on an H200: medians alone."""
    return Climb.read(RECORDED.with_name("larger_batch.json"))


def climb_here() -> Climb:
    """Measure the ladder on this process's GPU, which takes a minute or two; without a GPU return the recorded one."""
    if not own_seat().gpus:
        return recorded_climb()
    roomy = torch.cuda.get_device_properties(0).total_memory >= ROOM
    return climb(LADDER if roomy else ONE_BATCH)


def climb(
    rungs: Mapping[str, Rung] = LADDER,
    device: str = "cuda",
    width: float = 1.0,
    batch: int = IMAGES,
    rounds: int = 9,
    steps: int = 10,
) -> Climb:
    """Measure every rung, and a product of two large matrices, by turns A B C A B C.

    Args:
        rungs: the ladder without.
        width: factor on VGG-11's channels.
        batch: images in a step on the first rung.
        rounds: how often each rung is measured.
        steps: of which a measurement is the mean.

    Raises:
        FloatingPointError: a loss is not a number.
    """
    trainers = {name: Trainer(rung, device, width, batch) for name, rung in rungs.items()}
    with ProgressBar(f"{len(rungs)} ways to take a step") as bar:

        def measure(trainer: Trainer) -> float:
            bar.refresh()
            return trainer.seconds(steps)

        for trainer in trainers.values():  # libraries choose their kernels, the compiler makes some
            trainer.seconds(3 + steps // 2)
            bar.refresh()
        measures = {name: lambda trainer=trainer: measure(trainer) for name, trainer in trainers.items()}
        taken = by_turns({**measures, PRODUCT: lambda: product_rate(device)}, rounds)
    for name, trainer in trainers.items():
        if not torch.stack(trainer.losses).isfinite().all():
            raise FloatingPointError(f"{name}: a loss is not a number after {len(trainer.losses)} steps")
    peaks = taken.pop(PRODUCT)
    return Climb(
        machine_text(device),
        time.strftime("%Y-%m-%d"),
        {name: trainer.batch for name, trainer in trainers.items()},
        image_flops(width),
        peaks,
        taken,
        {name: trainer.losses[0].item() for name, trainer in trainers.items()},
    )


def image_flops(width: float = 1.0) -> float:
    """Floating-point operations of VGG-11 with an image, forward and backward: counted on "meta" tensors."""
    from torch.utils.flop_counter import FlopCounterMode

    model = vgg11(width=width).to("meta")
    with FlopCounterMode(display=False) as counter:
        cross_entropy(
            model(torch.empty(1, 3, 32, 32, device="meta")), torch.zeros(1, dtype=torch.long, device="meta")
        ).backward()
    return float(counter.get_total_flops())

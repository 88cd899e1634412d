"""A GPU that trains must be fed: images are read and changed on the processor, and copied into the GPU's memory.

Who makes the batches (this process, or workers beside it), and how they are copied, decides how long the GPU waits.

- pageable: the copy waits until the GPU has come to it, and goes by a detour through memory that the driver keeps.
- pinned: the batch lies in memory that the system never moves, so the GPU fetches it by itself; nobody waits.
- prefetched: pinned, and the next batch is copied on a stream of its own while the GPU computes on this one.

Source: docs.pytorch.org, "A guide on good usage of non_blocking and pin_memory() in PyTorch".
"""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from course_utils.gpu_seats import own_seat
from course_utils.lessons.gpu_nodes.ladder import LADDER, TrainingStep
from course_utils.lessons.gpu_nodes.product_rate import machine_text, mean_seconds
from course_utils.measuring import by_turns
from course_utils.progress_bar import ProgressBar
from course_utils.vgg import PIXELS

RECORDED = Path(__file__).parent / "recorded" / "feeding.json"
WAYS = ("pageable", "pinned", "prefetched")
Batch = tuple[torch.Tensor, torch.Tensor]


class Augmented(Dataset):
    """Made-up pictures of CIFAR-10's size, shifted by up to four pixels and mirrored by chance when they are read."""

    def __init__(self, pictures: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.pictures = torch.randint(256, (pictures, 3, PIXELS, PIXELS), dtype=torch.uint8, generator=generator)
        self.classes = torch.randint(10, (pictures,), generator=generator)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        down, right, mirrored = torch.randint(0, 9, (3,)).tolist()
        x = torch.nn.functional.pad(self.pictures[index], (4, 4, 4, 4))
        x = x[:, down : down + PIXELS, right : right + PIXELS]
        x = x.flip(2) if mirrored % 2 else x
        return x.float().div_(255), self.classes[index]


def loader_of(dataset: Dataset, batch: int, transfer: str, workers: int) -> DataLoader:
    """A loader for one of the `WAYS`, with this many processes that make batches; 0: this process makes them."""
    return DataLoader(
        dataset,
        batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=transfer != "pageable",
        persistent_workers=workers > 0,
    )


def fed(loader: Iterable[Batch], transfer: str, device: str = "cuda") -> Iterator[Batch]:
    """The batches of a loader, on the device.

    Args:
        transfer: one of `WAYS`.
    """
    if transfer != "prefetched":
        for x, y in loader:
            yield x.to(device, non_blocking=transfer == "pinned"), y.to(device, non_blocking=transfer == "pinned")
        return
    side = torch.cuda.Stream()
    coming: tuple[Batch, torch.cuda.Event] | None = None
    for x, y in loader:
        with torch.cuda.stream(side):
            batch = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            arrived = side.record_event()
        if coming:
            yield _handed_over(*coming)
        coming = batch, arrived
    if coming:
        yield _handed_over(*coming)


def _handed_over(batch: Batch, arrived: torch.cuda.Event) -> Batch:
    """A batch that the stream which computes waits for; its memory is not given away before that one is done."""
    computing = torch.cuda.current_stream()
    computing.wait_event(arrived)
    for tensor in batch:
        tensor.record_stream(computing)
    return batch


def fed_seconds(step: TrainingStep, batches: Iterable[Batch], steps: int) -> float:
    """Of one step over these batches, the mean of this many; five before them do not count."""
    left = iter(batches)
    for x, y in itertools.islice(left, 5):
        step(x, y)
    return mean_seconds(lambda: step(*next(left)), steps, step.device)


FED = LADDER["+ channels last"]
"""How a step is done: what lesson 13's ladder reaches before the compiler."""
NEVER, MADE = "on the GPU from the beginning", "made before"
NO_COPY = "no copy"


@dataclass(frozen=True)
class Fed:
    """How long a step takes by who makes the batches and how they are copied.

    Attributes:
        machine, date: where and when it was measured.
        batch: images in a step.
        seconds: who makes the batches → way to copy → seconds of a step, in several runs.
    """

    machine: str
    date: str
    batch: int
    seconds: dict[str, dict[str, list[float]]]

    @property
    def origin(self) -> str:
        """Where and when it was measured, in a line."""
        return f"measured on {self.date}: {self.machine}; {self.batch} images in a step"

    def write(self, file: Path) -> None:
        """Keep it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> "Fed":
        """What was kept."""
        return cls(**json.loads(file.read_text()))


def feed_here() -> Fed:
    """Measure on this process's GPU, which may take a minute; where there is none, read what was recorded."""
    return feed() if own_seat().gpus else Fed.read(RECORDED)


def feed(
    device: str = "cuda",
    workers: tuple[int, ...] = (0, 4, 14),
    width: float = 1.0,
    batch: int = 512,
    steps: int = 25,
    runs: int = 5,
) -> Fed:
    """Measure a step with batches that are there already, with copies alone, and with whoever makes them.

    What is compared runs by turns: no copy and the ways to copy, and then the ways to copy of each maker.

    Args:
        workers: numbers of processes that make batches; 0: this process makes them.
        width: factor on VGG-11's channels.
        steps: of which a measurement is the mean.
    """
    dataset, step = Augmented(batch * (steps + 6)), TrainingStep(FED, device, width)
    ways = WAYS if device == "cuda" else WAYS[:1]
    with ProgressBar("ways to feed a GPU") as bar:

        def seconds(make_batches: Callable[[], Iterable[Batch]]) -> float:
            bar.refresh()
            return fed_seconds(step, make_batches(), steps)

        def measured(batches: Mapping[str, Callable[[], Iterable[Batch]]]) -> dict[str, list[float]]:
            return by_turns({name: partial(seconds, make_batches) for name, make_batches in batches.items()}, runs)

        there = next(iter(loader_of(dataset, batch, "pageable", 0)))
        there = tuple(tensor.to(device) for tensor in there)
        pageable = list(loader_of(dataset, batch, "pageable", 0))
        pinned = [tuple(tensor.pin_memory() for tensor in pair) for pair in pageable] if device == "cuda" else []
        sources = {transfer: pageable if transfer == "pageable" else pinned for transfer in ways}
        copied = {transfer: partial(fed, sources[transfer], transfer, device) for transfer in ways}
        without_makers = measured({NO_COPY: partial(itertools.repeat, there)} | copied)
        found = {NEVER: {NO_COPY: without_makers.pop(NO_COPY)}, MADE: without_makers}
        for number in workers:
            loaders = {transfer: loader_of(dataset, batch, transfer, number) for transfer in ways}
            found[makers(number)] = measured(
                {transfer: partial(fed, loader, transfer, device) for transfer, loader in loaders.items()}
            )
    return Fed(machine_text(device), time.strftime("%Y-%m-%d"), batch, found)


def makers(workers: int) -> str:
    """Who makes the batches, in words."""
    return f"made by {workers} workers" if workers else "made by this process"

"""A measured training run: what the figures of the CS744 report need of it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.lessons.data_parallel.timed_steps import PARTS
from course_utils.lessons.hardware.step_shares import EPOCH_IMAGES
from course_utils.measuring import Measured


@dataclass(frozen=True)
class Series:
    """What the kernel had counted at several times during the steps.

    Attributes:
        seconds: since the first step began.
        sent, received: for each node the bytes so far.
        cpu: for each node the CPU seconds of its rank so far.
    """

    seconds: list[float]
    sent: list[list[int]]
    received: list[list[int]]
    cpu: list[list[float]]


@dataclass(frozen=True)
class TrainingRun:
    """Some steps of VGG-11 on one rank or several.

    Attributes:
        way: its name; "one process" stands for one without replicas.
        world_size: ranks that took part.
        width, images, bucket_bytes: see `course_utils.lessons.data_parallel.timed_steps.StepWork`.
        gradient_bytes: of all gradients together.
        rates: bits per second of each node's link; empty where the ranks share memory.
        cores: that all ranks together may use.
        parts: part → for each rank the seconds of every step.
        seconds: of all steps together.
        user, system: CPU seconds of each rank in them.
        sent, received: bytes that passed each node's interface; empty without nodes.
        losses: for each rank, before every step.
        series: None without nodes.
    """

    way: str
    world_size: int
    width: float
    images: int
    bucket_bytes: int | None
    gradient_bytes: int
    rates: list[int]
    cores: int
    parts: dict[str, list[list[float]]]
    seconds: float
    user: list[float]
    system: list[float]
    sent: list[int]
    received: list[int]
    losses: list[list[float]]
    series: Series | None = None

    @property
    def setting(self) -> tuple:
        """What two runs must have in common to be compared."""
        return self.width, self.images, self.rates[0] if self.rates else None, self.cores

    @property
    def steps(self) -> int:
        """How many were measured."""
        return len(self.losses[0])

    def part(self, name: str) -> Measured:
        """The seconds of a part in every step, as the mean over the ranks."""
        return Measured(tuple(statistics.fmean(step) for step in zip(*self.parts[name], strict=True)))

    @property
    def step(self) -> Measured:
        """The seconds of every step: the sum of its parts."""
        return Measured(tuple(map(sum, zip(*(self.part(name).values for name in PARTS), strict=True))))

    @property
    def exposed(self) -> Measured:
        """The seconds of every step in which it waits for messages."""
        return self.part("communication")

    @property
    def cpu(self) -> list[float]:
        """The share of a core that each rank used."""
        return [(user + system) / self.seconds for user, system in zip(self.user, self.system, strict=True)]

    def __repr__(self) -> str:
        return f"<{self.way} on {self.world_size}: {self.steps} steps of {1e3 * self.step.median:.0f} ms>"


def pooled(runs: Sequence[TrainingRun], name: str | None = None) -> Measured:
    """The seconds of a part, or of whole steps, in all steps of several runs."""
    each = [run.part(name) if name else run.step for run in runs]
    return Measured(tuple(value for measured in each for value in measured.values))


def epoch(runs: Sequence[TrainingRun]) -> Measured:
    """The seconds that 50,000 images would take at the pace of each step."""
    return pooled(runs).times(EPOCH_IMAGES / runs[0].images)

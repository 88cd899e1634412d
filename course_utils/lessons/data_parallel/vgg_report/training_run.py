"""A measured training run: what the figures need of it, and how one is made on the ranks."""

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.vgg_report.timed_steps import (
    ONE_PROCESS,
    PARTS,
    RankSteps,
    StepWork,
    Way,
    check_work,
    name_of,
    timed_steps,
)
from course_utils.lessons.hardware.step_shares import EPOCH_IMAGES
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured

if TYPE_CHECKING:
    from course_utils.ranks.links.traffic import Sample, Traffic
    from course_utils.ranks.ranks import Ranks

MOST_SAMPLES = 80
"""A run keeps at most so many looks at its nodes' counters."""


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
        width, images, bucket_bytes: see `course_utils.lessons.data_parallel.vgg_report.timed_steps.StepWork`.
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


def train_way(
    ranks: "Ranks",
    way: Way = "DDP",
    *,
    world_size: int | None = None,
    keep: bool = True,
    **work: float | None,
) -> TrainingRun:
    """Train VGG-11 for some steps on the ranks, measured; the run is kept for `course.report()`.

    Args:
        way: a key of `replicas.WAYS`; "one process", which takes one rank; or a function as those of `WAYS`.
        world_size: how many ranks take part; None: all of them.
        keep: False where the run is only a rehearsal.
        work: fields of `timed_steps.Work`: width, images, steps, bucket_bytes, …

    Raises:
        CourseError: there is no such way, or the images do not divide among the ranks.
        RankError: a rank raised.
    """
    known = [field.name for field in dataclasses.fields(StepWork)]
    if unknown := [name for name in work if name not in known]:
        raise CourseError(f"train_way has no {unknown[0]}=. It takes {', '.join(known)}.")
    asked = StepWork(**work)
    taking_part = 1 if way == ONE_PROCESS else world_size or ranks.world_size
    check_work(way, asked, taking_part)
    results = ranks.run(timed_steps, way, asked, ranks=taking_part, backend="gloo").results
    traffic = ranks.traffic() if ranks.facts["network"] else None
    run = run_of(name_of(way), asked, results, traffic)
    if keep:
        from course_utils.lessons.data_parallel.vgg_report.kept_runs import keep_run

        keep_run(run)
    return run


def run_of(way: str, work: StepWork, results: Sequence[RankSteps], traffic: "Traffic | None") -> TrainingRun:
    """What the ranks measured, put together."""
    began, ended = min(one.began for one in results), max(one.ended for one in results)
    with_nodes = traffic is not None and all(one.sent is not None for one in results)
    return TrainingRun(
        way=way,
        world_size=len(results),
        width=work.width,
        images=work.images,
        bucket_bytes=work.bucket_bytes,
        gradient_bytes=results[0].gradient_bytes,
        rates=list(traffic.rates[: len(results)]) if with_nodes else [],
        cores=allowed_cores(),
        parts={part: [one.parts[part] for one in results] for part in PARTS},
        seconds=ended - began,
        user=[one.user for one in results],
        system=[one.system for one in results],
        sent=[one.sent for one in results] if with_nodes else [],
        received=[one.received for one in results] if with_nodes else [],
        losses=[one.losses for one in results],
        series=series_of(traffic.samples, began, ended, len(results)) if with_nodes else None,
    )


def series_of(samples: Sequence["Sample"], began: float, ended: float, nodes: int) -> Series:
    """The samples from shortly before the first step to shortly after the last, thinned out."""
    inside = [number for number, sample in enumerate(samples) if began <= sample.time <= ended] or [0]
    chosen = samples[max(0, inside[0] - 1) : inside[-1] + 2]
    every = -(-len(chosen) // MOST_SAMPLES)
    chosen = [*chosen[:-1:every], chosen[-1]]
    return Series(
        seconds=[round(sample.time - began, 4) for sample in chosen],
        sent=[[sample.sent[node] for sample in chosen] for node in range(nodes)],
        received=[[sample.received[node] for sample in chosen] for node in range(nodes)],
        cpu=[[round(sample.cpu[node], 2) for sample in chosen] for node in range(nodes)],
    )

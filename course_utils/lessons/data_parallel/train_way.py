"""Train VGG-11 for some steps on the ranks, in one of several ways, measured and kept for the report."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.kept_runs import keep_run
from course_utils.lessons.data_parallel.timed_steps import (
    ONE_PROCESS,
    PARTS,
    RankSteps,
    StepWork,
    Way,
    check_work,
    name_of,
    timed_steps,
)
from course_utils.lessons.data_parallel.training_run import Series, TrainingRun
from course_utils.machine import allowed_cores

if TYPE_CHECKING:
    from course_utils.ranks.links.traffic import Sample, Traffic
    from course_utils.ranks.ranks import Ranks

MOST_SAMPLES = 80
"""A run keeps at most this many looks at its nodes' counters."""


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
        work: fields of `timed_steps.StepWork`: width, images, steps, bucket_bytes, …

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
        keep_run(run)
    return run


def run_of(method: str, work: StepWork, results: Sequence[RankSteps], traffic: "Traffic | None") -> TrainingRun:
    """What the ranks measured, put together."""
    began, ended = min(result.began for result in results), max(result.ended for result in results)
    with_nodes = traffic is not None and all(result.sent is not None for result in results)
    return TrainingRun(
        way=method,
        world_size=len(results),
        width=work.width,
        images=work.images,
        bucket_bytes=work.bucket_bytes,
        gradient_bytes=results[0].gradient_bytes,
        rates=list(traffic.rates[: len(results)]) if with_nodes else [],
        cores=allowed_cores(),
        parts={part: [result.parts[part] for result in results] for part in PARTS},
        seconds=ended - began,
        user=[result.user for result in results],
        system=[result.system for result in results],
        sent=[result.sent for result in results] if with_nodes else [],
        received=[result.received for result in results] if with_nodes else [],
        losses=[result.losses for result in results],
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

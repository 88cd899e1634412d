"""How much of the communication hides behind the backward pass, and whether it costs more than torch's own DDP.

On 4 nodes, with the least exposed communication that can be: what all buckets take by themselves, without what of the
backward pass is left when the first bucket is ready. Once with computing on the cores that all nodes share, where
messages take computing time away; once with computing that is emulated by waiting, as if each node had a processor of
its own. And on 2 ranks of this machine: what two data-parallel processes lose against two that do not talk.
"""

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workshop.bench.ranks import nodes_of, ranks_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

if TYPE_CHECKING:
    from torch import nn

    from course_utils.lessons.overlap.step_times import StepTimes, Way
    from course_utils.ranks.ranks import Ranks

NODES = 4
EXPOSED = 1.10  # of the least possible
HIDDEN = 0.03  # of the step, where all can hide
WEAK = 0.98
OURS, DDP = "the course's buckets", "torch's DDP"
FEWEST = 7  # rounds


@dataclass(frozen=True)
class OverlapCase:
    """A network on nodes.

    Attributes:
        rate: of the links, in Mbit/s.
        width: of VGG-11.
        batch: images on each rank.
        bucket_bytes: of the course's buckets and of DDP's.
        waits: seconds of forward and backward where computing is emulated by waiting; None: it is done.
    """

    name: str
    rate: int
    width: float
    batch: int
    bucket_bytes: int
    waits: tuple[float, float] | None = None

    @property
    def build(self) -> "Callable[[int], nn.Module]":
        """Makes the network from a seed."""
        from workshop.bench.overlap_ranks import plain_vgg, waiting_vgg

        if self.waits:
            forward, backward = self.waits
            return functools.partial(waiting_vgg, width=self.width, forward=forward, backward=backward)
        return functools.partial(plain_vgg, width=self.width)


CASES = (
    OverlapCase("4 processors (played), too much to hide", 100, 0.375, 1, 1 << 19, (0.2, 0.4)),
    OverlapCase("4 processors (played), all can hide", 100, 0.25, 1, 1 << 16, (0.4, 0.8)),
    OverlapCase("4 nodes on these cores, too much to hide", 100, 0.375, 96, 1 << 19),
    OverlapCase("4 nodes on these cores, all can hide", 50, 0.125, 1536, 1 << 15),
)
WEAK_CASE = OverlapCase("2 processes on these cores", 0, 0.375, 384, 1 << 21)


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every case; at least seven rounds of each, by turns. `only`: words of the cases' names."""
    rounds = max(runs, FEWEST)
    rows = []
    for case in CASES:
        if chosen(case, only):
            with nodes_of(NODES, case.rate) as ranks:
                rows += rows_of(case, ranks, rounds)
    if chosen(WEAK_CASE, only):
        rows += weak_scaling(rounds)
    return rows


def chosen(case: OverlapCase, only: Sequence[str]) -> bool:
    """Is this case asked for?"""
    return not only or any(word in case.name for word in only)


def rows_of(case: OverlapCase, ranks: "Ranks", rounds: int) -> list[Row]:
    """Steps by turns: without communication, after the backward pass, in the course's buckets, in torch's."""
    from course_utils.lessons.data_parallel.replicas import all_reduce_flat, torch_ddp, unsynchronised
    from course_utils.lessons.overlap.bucket_size import BucketModel, backward_times
    from course_utils.lessons.overlap.buckets import make_buckets, overlapped
    from course_utils.lessons.overlap.step_times import ALONE
    from workshop.bench.overlap_ranks import bucket_seconds

    ways = {
        ALONE: unsynchronised,
        "flat": all_reduce_flat,
        OURS: functools.partial(overlapped, bucket_bytes=case.bucket_bytes),
        DDP: functools.partial(torch_ddp, bucket_bytes=case.bucket_bytes),
    }
    models = [
        BucketModel.of(times, order, 0.0, 0.0)
        for times, order in ranks.run(backward_times, case.batch, rounds, case.build, backend="gloo").results
    ]
    buckets = make_buckets(models[0].sizes, case.bucket_bytes)
    sizes = [sum(models[0].sizes[index] for index in places) for places in buckets]
    overlappable = [model.backward - max(model.ready[index] for index in buckets[0]) for model in models]
    taken = ranks.run(bucket_seconds, sizes, rounds, backend="gloo").results
    communication = [max(each) for each in zip(*taken, strict=True)]
    return case_rows(case.name, len(buckets), communication, overlappable, timed(case, ranks, ways, rounds))


def case_rows(
    name: str, buckets: int, communication: Sequence[float], overlappable: Sequence[float], steps: "StepTimes"
) -> list[Row]:
    """The rows of a case from what was measured.

    Args:
        buckets: how many there are.
        communication: seconds of all buckets by themselves, run by run.
        overlappable: seconds of the backward pass behind the first bucket, rank by rank.
    """
    least = max(0.0, statistics.median(communication) - statistics.median(overlappable))
    rows = [seconds_row("overlap", f"{name}: step, {method}", seconds) for method, seconds in steps.seconds.items()]
    rows += [
        seconds_row("overlap", f"{name}: communication by itself, {buckets} buckets", communication),
        seconds_row("overlap", f"{name}: backward pass behind the first bucket", overlappable),
        seconds_row("overlap", f"{name}: exposed, all after the backward pass", steps.exposed_by_round("flat")),
    ]
    for method in (OURS, DDP):
        exposed = steps.exposed_by_round(method)
        rows.append(seconds_row("overlap", f"{name}: exposed, {method}", exposed))
        rows.append(exposed_row(f"{name}: exposed, {method}", exposed, least, steps.seconds[method], method == OURS))
    ours, theirs = steps.seconds[OURS], steps.seconds[DDP]
    return [*rows, ratio_row("overlap", f"{name}: step, {OURS} / {DDP}", ours, theirs, target=1.0)]


def timed(case: OverlapCase, ranks: "Ranks", ways: "dict[str, Way]", rounds: int) -> "StepTimes":
    """One step of each way by turns, again and again; two rounds before them do not count: DDP finds its buckets."""
    from course_utils.lessons.overlap.step_times import StepTimes, slowest
    from workshop.bench.overlap_ranks import plain_steps

    run = ranks.run(plain_steps, ways, case.batch, rounds, case.build, 2, backend="gloo")
    return StepTimes(slowest(run.results))


def exposed_row(
    metric: str, exposed: Sequence[float], least: float, steps: Sequence[float], with_target: bool = True
) -> Row:
    """Exposed communication ÷ the least possible; ÷ the step, where all of it can hide."""
    if least > 0:
        values, what, target, unit = [seconds / least for seconds in exposed], "least possible", EXPOSED, "×"
    else:
        values = [seconds / step for seconds, step in zip(exposed, steps, strict=True)]
        what, target, unit = "step", HIDDEN, "of it"
    name = f"{metric} / {what}"
    wanted = target if with_target else None
    return value_row("overlap", name, values, unit, target=wanted)


def weak_scaling(rounds: int) -> list[Row]:
    """Two processes with as many images each as one alone: how much of the speed of two that do not talk is left."""
    from course_utils.lessons.data_parallel.replicas import torch_ddp, unsynchronised
    from course_utils.lessons.overlap.buckets import overlapped
    from course_utils.lessons.overlap.step_times import ALONE

    case = WEAK_CASE
    ways = {
        ALONE: unsynchronised,
        OURS: functools.partial(overlapped, bucket_bytes=case.bucket_bytes),
        DDP: functools.partial(torch_ddp, bucket_bytes=case.bucket_bytes),
    }
    with ranks_of(2) as ranks:
        seconds = timed(case, ranks, ways, rounds).seconds
    rows = [seconds_row("overlap", f"{case.name}: step, {method}", each) for method, each in seconds.items()]
    for method in (OURS, DDP):
        name = f"{case.name}: weak-scaling efficiency, {method}"
        target = WEAK if method == OURS else None
        rows.append(ratio_row("overlap", name, seconds[ALONE], seconds[method], target=target, better="higher"))
    return rows

"""Lanes of a training run that never took place: in each of them, most time is lost to a cause that was chosen before.

A step of data parallelism waits for input, goes forward and backward while buckets of gradients travel, waits for the
last bucket, and updates the weights. In a step of a pipeline, lesson 10's 1F1B comes first, and then an all-reduce.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from course_utils.lessons.pipeline.actions import FORWARD
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.profiling.intervals import Interval, union
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.read_the_manual.large_training.bottleneck import Cause

MOST, LITTLE = (0.022, 0.03), (0.002, 0.007)
"""Seconds that a rank loses in each step to the chosen cause, and to any other one."""
BUCKETS = 4
"""Messages of a step's gradients."""


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of the parts of one rank's step."""

    input: float
    forward: float
    again: float
    backward: float
    optimizer: float


def made_lanes(
    rng: np.random.Generator, cause: Cause, ranks: int, slow_rank: int = 0, prefetched: bool = False
) -> list[Lanes]:
    """Make up the lanes of a few steps in which most time is lost to one cause.

    Args:
        slow_rank: the rank that the others wait for, if the cause is a slow rank.
        prefetched: input is loaded while the ranks compute, so that no rank waits for it.
    """
    if cause is Cause.BUBBLE:
        return pipeline_lanes(rng, ranks)
    lost = {each: rng.uniform(*(MOST if each is cause else LITTLE)) for each in Cause}
    forward = rng.uniform(0.02, 0.03)
    usual = StepSeconds(lost[Cause.INPUT], forward, lost[Cause.AGAIN], 2 * forward, lost[Cause.OPTIMIZER])
    usual = replace(usual, input=0.0) if prefetched else usual
    each_step = []
    for _ in range(int(rng.integers(2, 5))):
        steps = [replace(usual, forward=forward * rng.uniform(0.99, 1.01)) for _ in range(ranks)]
        if cause is Cause.STRAGGLER:
            late = 1.4 * lost[Cause.STRAGGLER]
            steps[slow_rank] = replace(usual, forward=forward + late)
        each_step.append(steps)
    return _data_parallel_lanes(each_step, lost[Cause.MESSAGES], float(rng.uniform(0, 20)), prefetched)


def late_input_lanes(rng: np.random.Generator, ranks: int, slow_rank: int) -> list[Lanes]:
    """Make up lanes in which a single rank waits long for input, so that all others wait for this rank."""
    lost = {each: rng.uniform(*LITTLE) for each in Cause}
    forward = rng.uniform(0.02, 0.03)
    usual = StepSeconds(lost[Cause.INPUT], forward, lost[Cause.AGAIN], 2 * forward, lost[Cause.OPTIMIZER])
    steps = [usual] * ranks
    steps[slow_rank] = replace(usual, input=usual.input + 1.4 * rng.uniform(*MOST))
    return _data_parallel_lanes([steps] * 3, lost[Cause.MESSAGES], float(rng.uniform(0, 20)), prefetched=False)


def _data_parallel_lanes(
    each_step: Sequence[Sequence[StepSeconds]], message: float, begin: float, prefetched: bool
) -> list[Lanes]:
    ranks = range(len(each_step[0]))
    computing: list[list[Interval]] = [[] for _ in ranks]
    communication: list[list[Interval]] = [[] for _ in ranks]
    phases: list[dict[str, list[Interval]]] = [{} for _ in ranks]
    marks, now = [], begin
    for steps in each_step:
        ready = [list(_compute(step, now, computing[rank], phases[rank])) for rank, step in enumerate(steps)]
        arrived = now
        for bucket in range(BUCKETS):
            # A message begins on each rank when its bucket is ready there, and ends on all ranks together.
            start = max(arrived, *(times[bucket] for times in ready))
            arrived = start + (message if bucket == BUCKETS - 1 else 0.7 * steps[0].backward / BUCKETS)
            for rank in ranks:
                communication[rank].append((ready[rank][bucket], arrived))
        end = arrived + max(step.optimizer for step in steps)
        for rank, step in enumerate(steps):
            computing[rank].append((arrived, arrived + step.optimizer))
            phases[rank].setdefault("optimizer", []).append((arrived, arrived + step.optimizer))
            if prefetched:
                phases[rank].setdefault("input", []).append((now, ready[rank][-1]))
        marks.append((now, end))
        now = end
    return [
        Lanes(rank, begin, now, union(computing[rank]), union(communication[rank]), phases[rank], marks)
        for rank in ranks
    ]


def _compute(
    step: StepSeconds, now: float, computing: list[Interval], phases: dict[str, list[Interval]]
) -> Iterator[float]:
    """Add what a rank computes before it updates its weights, and yield when each bucket of gradients is ready."""
    start = now
    if step.input:
        phases.setdefault("input", []).append((now, now + step.input))
        start = now = now + step.input
    phases.setdefault("forward", []).append((now, now + step.forward))
    now += step.forward
    for _ in range(BUCKETS):
        for name, seconds in (("again", step.again / BUCKETS), ("backward", step.backward / BUCKETS)):
            phases.setdefault(name, []).append((now, now + seconds))
            now += seconds
        yield now
    computing.append((start, now))


def pipeline_lanes(rng: np.random.Generator, stages: int) -> list[Lanes]:
    """Make up the lanes of a pipeline with few micro-batches, in which most time is lost to the bubble."""
    micro_batches, forward = stages + int(rng.integers(0, 2)), rng.uniform(0.004, 0.006)
    timing = simulate_schedule(one_f_one_b_schedule(stages, micro_batches), forward, forward, forward)
    message, optimizer, begin = rng.uniform(*LITTLE), rng.uniform(*LITTLE), float(rng.uniform(0, 20))
    lanes = []
    end = timing.seconds + message + optimizer
    for rank in range(stages):
        computing, phases = [], {"forward": [], "backward": []}
        for entry in timing.entries:
            if entry.rank == rank:
                span = begin + entry.start, begin + entry.end
                computing.append(span)
                phases["forward" if entry.action.kind == FORWARD else "backward"].append(span)
        reduced = max(last for _, last in computing) + message
        phases["optimizer"] = [(reduced, reduced + optimizer)]
        communication = [(reduced - message, reduced)]
        computing = union([*computing, (reduced, reduced + optimizer)])
        lanes.append(Lanes(rank, begin, begin + end, computing, communication, phases, [(begin, begin + end)]))
    return lanes

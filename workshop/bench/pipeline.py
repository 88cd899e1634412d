"""Pipelines on four ranks: equal to the serial network, idle as long as the formulas say, and fifty clean runs of each.

The idle shares are those of stages that wait in place of computing, as four ranks may share two cores; their time is
measured by the trace. Chosen by words: `course bench pipeline equal`, `idle`, `clean`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from course_utils.lessons.pipeline.actions import Schedule
from course_utils.lessons.pipeline.digits_pipeline import largest_difference, timed_runs, train_alone
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.schedules import bubble_fraction, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import Timing, simulate_schedule
from course_utils.lessons.pipeline.validate import peak_in_flight
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule
from course_utils.measuring import by_turns
from workshop.bench.clean_runs import clean_rows
from workshop.bench.parts import chosen_parts
from workshop.bench.pipeline_ranks import RATE, TrainedStages, train_pipeline, train_with_torch
from workshop.bench.ranks import ranks_of
from workshop.bench.rows import Row, ratio_row, value_row

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

P = 4  # ranks
CHUNKS = {"interleaved": 2}
"""Stages on each rank, where there is more than one."""
SCHEDULES: dict[str, Callable[[int, int], Schedule]] = {
    "GPipe": gpipe_schedule,
    "1F1B": one_f_one_b_schedule,
    "interleaved": partial(interleaved_schedule, chunks=CHUNKS["interleaved"]),
    "ZB-H1": zb_h1_schedule,
    "ZB-H2": zb_h2_schedule,
}
BY_TORCH = ("GPipe", "1F1B", "interleaved", "ZB-H1")
PUBLISHED_OTHERWISE = {"1F1B": 1}
"""Ranks whose published order is not the one that torch 2.13 runs: it counts the last rank's forward passes from 1."""
TORCHS = " by torch"
BATCHES = 2 * P
"""Micro-batches where nothing is timed."""
MICRO_BATCHES = (4, 8, 16)
STEPS = 4
SECONDS = 0.05
"""Of a forward pass, and of each half of a backward pass: a message that is waited for costs about a millisecond."""
POINTS, EQUAL, ZB_H1_BUBBLE = 2.0, 1e-10, 0.40
REPEATS = 50
"""Runs in a row of each that have to be clean."""


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts = {"equal": equal, "idle": partial(idle, runs=runs), "clean": clean}
    chosen = chosen_parts("pipeline", parts, only).values()
    with ranks_of(P) as ranks:
        return [row for part in chosen for row in part(ranks)]


def ways(ranks: "Ranks", steps: int) -> "dict[str, Callable[[], list[TrainedStages]]]":
    """By name: what trains through a schedule, ours or torch's."""
    found = {}
    for name, make in SCHEDULES.items():
        own = partial(ranks.run, train_pipeline, make(P, BATCHES), steps)
        found[name] = lambda own=own: own().results
    for name in BY_TORCH:
        theirs = partial(ranks.run, train_with_torch, name, SCHEDULES[name](P, BATCHES), steps, backend="gloo")
        found[f"{name}{TORCHS}"] = lambda theirs=theirs: theirs().results
    return found


def equal(ranks: "Ranks") -> list[Row]:
    """How far losses and parameters are from one process after some steps; and whether torch's order is ours."""
    rows, serial = [], one_process(STEPS)
    for name, train in ways(ranks, STEPS).items():
        results = train()
        metric = f"{name}: far from one process after {STEPS} steps"
        rows.append(value_row("pipeline", metric, [difference_to_serial(results, serial)], "", target=EQUAL))
        if name.endswith(TORCHS):
            rows.append(order_row(name.removesuffix(TORCHS), results[0].order))
    return rows


def order_row(name: str, theirs: Schedule) -> Row:
    """On how many ranks the order that torch publishes is ours."""
    same = sum(a == b for a, b in zip(theirs, SCHEDULES[name](P, BATCHES), strict=True))
    target = P - PUBLISHED_OTHERWISE.get(name, 0)
    metric = f"{name}{TORCHS}: ranks whose published order is ours"
    return value_row("pipeline", metric, [same], f"of {P}", target=target, better="higher")


def one_process(steps: int) -> TrainedStages:
    """The same training in one process; the whole network counts as stage 0."""
    model, losses = train_alone(steps, RATE)
    return TrainedStages(losses, {0: [parameter.detach() for parameter in model.parameters()]})


def difference_to_serial(results: "Sequence[TrainedStages]", serial: TrainedStages) -> float:
    """The largest difference of any loss or parameter; `results` of all ranks."""
    losses = [max(each, key=abs) for each in zip(*(result.losses for result in results), strict=True)]
    far = largest_difference([result.parameters for result in results], serial.parameters[0])
    return max(far, *(abs(ours - theirs) for ours, theirs in zip(losses, serial.losses, strict=True)))


def idle(ranks: "Ranks", runs: int) -> list[Row]:
    """Idle share and micro-batches in flight, run and formula; the bubbles of 1F1B and ZB-H1, by turns."""
    rows = []
    for micro_batches in MICRO_BATCHES:
        schedules = {name: make(P, micro_batches) for name, make in SCHEDULES.items()}
        measures = {name: partial(timed_run, ranks, schedule) for name, schedule in schedules.items()}
        timed = by_turns(measures, runs)
        for name, taken in timed.items():
            rows += rows_of(f"{name}, m = {micro_batches}", name, micro_batches, taken)
        bubbles = [[run.idle_share * run.seconds for run in timed[name]] for name in ("ZB-H1", "1F1B")]
        metric = f"bubble, ZB-H1 / 1F1B, m = {micro_batches}"
        rows.append(ratio_row("pipeline", metric, *bubbles, target=ZB_H1_BUBBLE))
    return rows


def timed_run(ranks: "Ranks", schedule: Schedule) -> Timing:
    """When everything happened in a run."""
    return timed_runs(ranks, schedule, SECONDS)[0]


def rows_of(label: str, name: str, micro_batches: int, taken: Sequence[Timing]) -> list[Row]:
    """One schedule: its idle share, how far that is from the formula, and what its ranks kept."""
    shares = [100 * run.idle_share for run in taken]
    expected = 100 * expected_idle(name, micro_batches)
    off = [abs(share - expected) for share in shares]
    planned = peak_in_flight(SCHEDULES[name](P, micro_batches))
    kept = [max(abs(a - b) for a, b in zip(peak_in_flight(done(run)), planned, strict=True)) for run in taken]
    return [
        value_row("pipeline", f"{label}: idle ({expected:.1f} % expected)", shares, "%"),
        value_row("pipeline", f"{label}: idle, run against formula", off, "points", target=POINTS),
        value_row("pipeline", f"{label}: in flight, run against plan", kept, "micro-batches", target=0),
    ]


def expected_idle(name: str, micro_batches: int) -> float:
    """The formula's idle share where there is one; the simulator's for the schedules that cut the backward pass."""
    if name.startswith("ZB"):
        return simulate_schedule(SCHEDULES[name](P, micro_batches)).idle_share
    return bubble_fraction(P, micro_batches, CHUNKS.get(name, 1))


def done(timing: Timing) -> Schedule:
    """What each rank did, in order."""
    return [[entry.action for entry in timing.entries if entry.rank == rank] for rank in range(timing.ranks)]


def clean(ranks: "Ranks", repeats: int = REPEATS) -> list[Row]:
    """How many of fifty runs in a row end without an error, and as one process does."""
    serial = one_process(1)
    gaps = {name: lambda train=train: difference_to_serial(train(), serial) for name, train in ways(ranks, 1).items()}
    return clean_rows("pipeline", gaps, EQUAL, repeats)

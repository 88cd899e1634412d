"""Where time goes: how much faster the five slow programs can be, what the profiler costs, whether traces are right.

The exposed communication that is read in a trace stands beside the one that is timed: what a step takes beyond one
without messages. Chosen by words: `course bench profiling programs`, `exposed`, `profiler`.
"""

import functools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.profiling.chrome_trace import problems
from course_utils.lessons.profiling.intervals import intersection, length
from course_utils.measuring import Compared
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import ranks_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

if TYPE_CHECKING:
    from course_utils.lessons.profiling.lanes import Lanes
    from course_utils.ranks.ranks import Ranks

P = 2  # ranks
BATCH = 16
BUCKET_BYTES = 1 << 19
FEWEST = 7  # rounds
BENCH = "profiling"


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names; at least seven rounds of each."""
    parts = {"programs": programs, "exposed": exposed, "profiler": profiler}
    chosen = chosen_parts(BENCH, parts, only).values()
    with ranks_of(P) as ranks:
        return [row for part in chosen for row in part(ranks, max(runs, FEWEST))]


def programs(ranks: "Ranks", rounds: int) -> list[Row]:
    """How many times as fast the faster one of each pair is."""
    from course_utils.lessons.profiling.slow_programs import PROGRAMS, race

    rows = []
    for number, program in PROGRAMS.items():
        rows += factor_rows(f"{number} {program.cause}", race(ranks, number, rounds), program.target)
    return rows


def factor_rows(name: str, taken: Compared, target: float) -> list[Row]:
    """How many times as fast the better one is, and what the slow one takes."""
    factor = ratio_row(BENCH, f"{name}: slow / better", taken.second, taken.first, target=target, better="higher")
    return [factor, seconds_row(BENCH, f"{name}: slow", taken.second)]


def exposed(ranks: "Ranks", rounds: int) -> list[Row]:
    """Exposed communication of a step: read in a trace, and timed."""
    from course_utils.lessons.data_parallel.replicas import all_reduce_flat, unsynchronised
    from course_utils.lessons.overlap.buckets import overlapped
    from course_utils.lessons.overlap.step_times import ALONE, step_times
    from course_utils.lessons.profiling.record_profiles import profile_ranks, training_step

    ways = {"flat": all_reduce_flat, "buckets": functools.partial(overlapped, bucket_bytes=BUCKET_BYTES)}
    timed = step_times(ranks, {ALONE: unsynchronised} | ways, BATCH, rounds)
    rows = []
    for name, wrap in ways.items():
        found = profile_ranks(ranks, training_step, wrap, BATCH, steps=rounds)
        read = transfer_seconds(found.lanes)
        waiting = [rank_lanes.exposed_seconds / rank_lanes.steps for rank_lanes in found.lanes]
        wrong = len(problems(found.trace))
        rows += [
            seconds_row(BENCH, f"{name}: exposed on all ranks' mean, waiting for the last one with it", waiting),
            seconds_row(BENCH, f"{name}: exposed, from the trace, where it is least", read),
            seconds_row(BENCH, f"{name}: exposed, timed", timed.exposed_by_round(name)),
            value_row(
                BENCH,
                f"{name}: trace − timed, of a step",
                [off(read, statistics.median(timed.exposed_by_round(name)), timed.median(name))],
                "",
            ),
            value_row(
                BENCH,
                f"{name}: hidden share",
                [rank_lanes.overlap_share for rank_lanes in found.lanes],
                "",
                better="higher",
            ),
            value_row(BENCH, f"{name}: idle share", [rank_lanes.idle_share for rank_lanes in found.lanes], ""),
            Row(BENCH, f"{name}: problems of the trace's format", wrong, "", "lower", 0, 0.0, 1),
        ]
    return rows


def off(read: Sequence[float], timed: float, step: float) -> float:
    """How far the two ways to know are apart, as a share of the step."""
    return abs(statistics.median(read) - timed) / step


def profiler(ranks: "Ranks", rounds: int) -> list[Row]:
    """How much longer a step takes under the profiler."""
    from course_utils.lessons.overlap.buckets import overlapped
    from workshop.bench.profiling_ranks import with_and_without

    wrap = functools.partial(overlapped, bucket_bytes=BUCKET_BYTES)
    taken = ranks.run(with_and_without, wrap, rounds, BATCH, backend="gloo").results[0]
    return [
        seconds_row(BENCH, "a step without the profiler", taken.first),
        ratio_row(BENCH, "a step with the profiler / without", taken.second, taken.first),
    ]


def transfer_seconds(lanes: "Sequence[Lanes]") -> list[float]:
    """Step by step: the exposed communication of the rank that has least of it, in seconds.

    An all-reduce is under way from its rank's call on, so it holds the wait for the last rank, too. The last rank waits
    for nobody: what is exposed there is the transfer.
    """
    return [
        min(length(intersection(rank_lanes.exposed, [step])) for rank_lanes, step in zip(lanes, steps, strict=True))
        for steps in zip(*(rank_lanes.each_step for rank_lanes in lanes), strict=True)
    ]

"""Virtual ranks: how long they and checks on them take, how true their time is, and what differs from real ranks."""

import contextlib
import io
import time
from collections.abc import Callable, Mapping
from functools import partial

import course_utils as course
from course_utils.checks.exercise import Exercise
from course_utils.checks.judge import Options, judge
from course_utils.checks.judging_plan import (
    JudgingStage,
    NeedsRanks,
    On,
    cases_of,
    fits_virtual_ranks,
    needs_nothing,
    on_these,
    plan,
)
from course_utils.checks.registry import chosen, find
from course_utils.checks.sample_answers import Program
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.allreduce_times import measure, medians, message_seconds, work_per_message
from course_utils.lessons.allreduce.network_topology import alpha_of, switch
from course_utils.ranks.interface import RanksInterface
from course_utils.ranks.offline.stand_ins import WorkerVirtualRanks
from course_utils.ranks.ranks import Ranks
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from workshop.bench.allreduce import one_vector, virtual_seconds
from workshop.bench.rows import Row, seconds_row, value_row

LINK, LATENCY = "50 Mbit/s", "3 ms"
SIZES = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]
LENGTHS = [4_000, 16_000, 64_000, 200_000]
NAMES = ("tree", "recursive doubling", "halving-doubling", "ring")
LARGE = (("ring", 256, 5.0), ("halving-doubling", 1024, 2.0), ("ring", 1024, 60.0))


def run(runs: int) -> list[Row]:
    """Time large runs once or a few times; compare times, results and counts with nodes behind links."""
    rows = [_large(name, size, target, min(runs, 3) if size < 1000 else 1) for name, size, target in LARGE]
    return [*rows, _twice(), *_against_nodes(runs), *_checks(runs)]


def _large(name: str, size: int, target: float, runs: int) -> Row:
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        VirtualRanks(size).run(one_vector, ALGORITHMS[name])
        seconds.append(time.perf_counter() - began)
    return seconds_row("virtual", f"{name} on {size:,} virtual ranks", seconds, target)


def _twice() -> Row:
    """Runs whose numbers are not the same the second time."""
    unlike = 0
    for allreduce in ALGORITHMS.values():
        first, second = (VirtualRanks(32).run(one_vector, allreduce) for _ in range(2))
        unlike += (first.events, first.seconds, first.sent) != (second.events, second.seconds, second.sent)
    return Row("virtual", "runs that differ the second time", unlike, "", "lower", 0, 0.0, len(ALGORITHMS))


def _against_nodes(runs: int) -> list[Row]:
    """Times against nodes behind links, measured by ping-pong; results and counts against the same ranks."""
    ranks = course.start(8, link=LINK, latency=LATENCY)
    try:
        times = ranks.run(message_seconds, SIZES, runs=5).results[0]
        beta = (times[-1] - times[-2]) / (SIZES[-1] - SIZES[-2])
        link, work = (alpha_of(SIZES, times, beta), beta), ranks.run(work_per_message).results[0]
        rows, unlike, compared = [], 0, 0
        for size in (4, 8):
            network = switch(size, *link, overhead=0.0002, work=work)
            measured = medians(measure(ranks, {name: ALGORITHMS[name] for name in NAMES}, LENGTHS, runs=max(3, runs),
                                       world_size=size))  # fmt: skip
            ours = partial(virtual_seconds, VirtualRanks(size, network=network))
            rows.append(
                value_row("virtual", f"error of the time on {size} nodes", _errors(measured, ours), "%", target=5)
            )
        for allreduce in ALGORITHMS.values():
            for size in (2, 3, 4, 5):
                unlike += _differ(ranks, allreduce, size)
                compared += 1
    finally:
        ranks.stop()
    rows.append(Row("virtual", "results or counts unlike real ranks'", unlike, "", "lower", 0, 0.0, compared))
    return rows


def _errors(measured: Mapping[str, list[float]], predicted: Callable[[str, int], float]) -> list[float]:
    """For each algorithm and length, by how many percent a time misses the measured one."""
    return [
        100 * abs(predicted(name, length) / seconds - 1)
        for name, by_length in measured.items()
        for length, seconds in zip(LENGTHS, by_length, strict=True)
    ]


def _differ(ranks: Ranks, allreduce: Callable, size: int) -> bool:
    real = ranks.run(one_vector, allreduce, 1001, ranks=size)
    virtual = VirtualRanks(size).run(one_vector, allreduce, 1001)
    same = all(ours.tobytes() == theirs.tobytes() for ours, theirs in zip(virtual.results, real.results, strict=True))
    counts = [(run.rounds, run.messages, run.bytes_per_rank, run.collectives) for run in (real, virtual)]
    return not same or counts[0] != counts[1]


def _checks(runs: int) -> list[Row]:
    """How long checks take on virtual ranks, against the same on as many real ones, by turns."""
    virtual = WorkerVirtualRanks(4)
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        rows = [row for lesson in ("04", "05") for row in _checks_of(lesson, runs, virtual, ranks)]
    finally:
        ranks.stop()
    return rows


def _checks_of(lesson: str, runs: int, virtual: RanksInterface, real: RanksInterface) -> list[Row]:
    """Rows for a lesson's exercises that need a communicator alone, over all answers that people write for them."""
    exercises = [exercise for exercise in chosen([lesson]) if _is_for_virtual_ranks(exercise)]
    right = [program for exercise in exercises for program in exercise.written.right]
    wrong = [program for exercise in exercises for program, _ in exercise.written.wrong]
    rows = []
    for kind, programs in (("right", right), ("wrong", wrong)):
        pairs = [
            (_check_seconds(program, virtual), _check_seconds(program, real))
            for _ in range(runs)
            for program in programs
        ]
        known = [(ours, theirs) for ours, theirs in pairs if ours is not None]
        ours, theirs = zip(*known, strict=True)
        name = f"lesson {int(lesson)}, {kind} answers"
        rows.append(seconds_row("virtual", f"{name}: a check on 4 virtual ranks", ours))
        rows.append(seconds_row("virtual", f"{name}: a check on 4 real ranks", theirs))
        rows.append(
            value_row("virtual", f"{name}: all checks, virtual / real", [sum(ours) / sum(theirs)], "×", target=0.1)
        )
    more = [_seconds_of_larger(exercise) for exercise in exercises]
    return [*rows, seconds_row("virtual", f"lesson {int(lesson)}: further cases, up to 64 virtual ranks", more)]


def _is_for_virtual_ranks(exercise: Exercise) -> bool:
    cases = cases_of(exercise, 1, 4)
    return fits_virtual_ranks(exercise, cases) and not needs_nothing(cases)


def _check_seconds(program: Program, ranks: RanksInterface) -> float | None:
    """Seconds until the verdict, on virtual ranks without cases that measure time; None where they cannot run it."""
    exercise, function = find(program.exercise), program.function()
    began = time.perf_counter()
    untimed = JudgingStage(
        ranks, lambda seed: [case for case in cases_of(exercise, seed, 4) if not case.timed], On.VIRTUAL
    )
    try:
        judge(exercise, function, [on_these(exercise, ranks) if isinstance(ranks, Ranks) else untimed], Options(seed=1))
    except NeedsRanks:
        return None
    return time.perf_counter() - began


def _seconds_of_larger(exercise: Exercise) -> float:
    function, (_, larger) = exercise.written.right[0].function(), plan(exercise, None, 1)
    began = time.perf_counter()
    judge(exercise, function, [larger], Options(seed=1))
    return time.perf_counter() - began

"""How long a learner waits for a verdict: over all answers that people write, right ones and wrong ones.

A deadlock is told at once. Another answer that hangs is found out by waiting: what its verdict takes beyond that
patience has a row of its own.
"""

import contextlib
import io
import sys
import time
from collections.abc import Sequence

import numpy as np
from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.finding import Kind
from course_utils.checks.judge import import_torch, verdict_on_these
from course_utils.checks.registry import chosen, find
from course_utils.checks.sample_answers import Program
from course_utils.ranks.interface import PATIENCE, RanksInterface
from workshop.bench.rows import Row, spread

SEARCH_TARGET = 1.0
"""Seconds for the search for a mistake; it is limited by counting runs, and not by this."""
SHARE, TARGET = 95, 2.0
"""The percentage of verdicts that must come within that many seconds, on four ranks that are running already."""


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Judge every answer `runs` times, by turns, on four ranks that hold torch; a row per lesson, then the sums.

    Args:
        only: names of exercises, or numbers of lessons; none means all.
    """
    programs = [program for exercise in chosen(only) for program in exercise.written.answers]
    taken: dict[str, list[float]] = {}
    hanging: list[float] = []
    searches: list[float] = []
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        import_torch(ranks)  # as the pages do while one reads
        with tqdm(total=runs * len(programs), unit=" verdicts", file=sys.stderr, leave=False) as bar:
            for program in programs * runs:
                lesson = find(program.exercise).lesson
                seconds, hung, search = timed(program, ranks)
                searches += search
                if hung:
                    hanging.append(seconds - PATIENCE)
                else:
                    taken.setdefault(lesson, []).append(seconds)
                bar.update()
    finally:
        ranks.stop()
    rows = [_row(f"{lesson}: {SHARE} % of verdicts within", seconds) for lesson, seconds in taken.items()]
    everything = [duration for seconds in taken.values() for duration in seconds]
    rows.append(_row(f"all: {SHARE} % of verdicts within", everything))
    within = 100.0 * sum(duration <= TARGET for duration in everything) / len(everything)
    rows.append(Row("checks", f"all: verdicts within {TARGET:g} s", within, "%", "higher", SHARE, 0.0, len(everything)))
    if searches:
        rows.append(_row(f"all: {SHARE} % of searches for the mistake within", searches, SEARCH_TARGET))
    if hanging:
        rows.append(_row(f"hanging answers: {SHARE} % within, beyond the patience of {PATIENCE:g} s", hanging))
    return rows


def timed(program: Program, ranks: RanksInterface) -> tuple[float, bool, list[float]]:
    """Judge one answer: (seconds, whether it hung, seconds of the search for its mistake where there was one).

    One that takes longer than the target is named on stderr.
    """
    function, exercise = program.function(), find(program.exercise)
    began = time.perf_counter()
    verdict = verdict_on_these(exercise, function, ranks)
    seconds = time.perf_counter() - began
    hung = verdict.finding is not None and verdict.finding.kind in (Kind.NO_PROGRESS, Kind.NOT_FINISHED)
    if seconds > TARGET + PATIENCE * hung:
        tqdm.write(f"{seconds:.2f} s  {program.exercise}, {program.name}: {verdict}", file=sys.stderr)
    return seconds, hung, [verdict.searched.seconds] if verdict.searched.runs else []


def _row(metric: str, seconds: Sequence[float], target: float = TARGET) -> Row:
    value = float(np.percentile(seconds, SHARE))
    return Row("checks", metric, value, "s", "lower", target, spread(seconds), len(seconds))

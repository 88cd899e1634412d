"""How far the checks can be trusted: what they reject, whether they name the mistake, and what they accept.

Wrong answers that people write must be rejected, with the question that fits; right ones in all styles accepted,
whatever the numbers drawn; and of right answers with one small change each, none that matters may pass.
"""

import contextlib
import io
import sys
from collections.abc import Sequence

from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.judge import Options, fresh_seed, verdict_on_these
from course_utils.checks.registry import chosen, find
from course_utils.checks.verdict import Result
from course_utils.ranks.interface import RanksInterface
from workshop.bench.busy import compare
from workshop.bench.rows import Row
from workshop.mutants.campaign import PATIENCE, judged, mutants_in

TARGETS = {
    "wrong answers rejected": 100.0,
    "right mistake named": 90.0,
    "right answers accepted": 100.0,
    "mutants killed": 100.0,
}
"""Percent that each must reach; mutants that are listed as equivalent do not count."""


def run(runs: int, only: Sequence[str] = (), busy: int = 0) -> list[Row]:
    """Grade the checks: at most four rows for each exercise. Right ones are judged `runs` times, with fresh numbers.

    Args:
        only: names of exercises, or numbers of lessons; none means all.
        busy: judge `runs` answers of each exercise by turns, alone and beside so many processes that compute; 0 for
            the rows above.
    """
    if busy:
        return compare(runs, busy, only)
    names = [exercise.name for exercise in chosen(only)]
    total = sum(_verdicts(name, runs) for name in names)
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        with tqdm(total=total, unit=" verdicts", file=sys.stderr, leave=False) as bar:
            return [row for name in names for row in grade(name, ranks, runs, bar)]
    finally:
        ranks.stop()


def grade(name: str, ranks: RanksInterface, runs: int, bar: tqdm | None = None) -> list[Row]:
    """The four rows of one exercise, on running ranks; three where it has no mutants."""
    if bar is not None:
        bar.set_description(name)
    rejected, named = _wrong_answers(name, ranks, bar)
    accepted = _right_answers(name, ranks, runs, bar)
    tally = judged(name, ranks, bar=bar)
    for mutant in tally.survived:
        tqdm.write(f"survived: {mutant}", file=sys.stderr)
    wrong_mutants = len(tally.killed) + len(tally.not_equivalent) + len(tally.survived)
    found = (_percent(rejected), _percent(named), _percent(accepted), tally.share_killed)
    counts = (len(rejected), len(named), len(accepted), wrong_mutants)
    return [
        Row("grader", f"{name}: {what}", value, "%", "higher", target, 0.0, count)
        for (what, target), value, count in zip(TARGETS.items(), found, counts, strict=True)
        if count
    ]


def _wrong_answers(name: str, ranks: RanksInterface, bar: tqdm | None) -> tuple[list[bool], list[bool]]:
    """Of each wrong answer whether it was rejected, and whether with the question of its file."""
    rejected, named = [], []
    for program, question in find(name).written.wrong:
        verdict = verdict_on_these(find(name), program.function(), ranks, Options(patience=PATIENCE))
        rejected.append(verdict.result == Result.WRONG)
        named.append(rejected[-1] and verdict.question == (question.text if question.is_asked else ""))
        _report(named[-1], f"{program.name}, wrong: {verdict}", verdict.seed, bar)
    return rejected, named


def _right_answers(name: str, ranks: RanksInterface, runs: int, bar: tqdm | None) -> list[bool]:
    """Of each right answer, `runs` times, whether it was accepted; each time all are judged with the same numbers."""
    accepted = []
    for seed in (fresh_seed() + turn for turn in range(runs)):
        for program in find(name).written.right:
            verdict = verdict_on_these(find(name), program.function(), ranks, Options(seed=seed))
            accepted.append(verdict.passed)
            _report(verdict.passed, f"{program.name}, right: {verdict}", seed, bar)
    return accepted


def _report(well: bool, text: str, seed: int | None, bar: tqdm | None) -> None:
    if not well:
        tqdm.write(f"{text}  [COURSE_SEED={seed}]", file=sys.stderr)
    if bar is not None:
        bar.update()


def _verdicts(name: str, runs: int) -> int:
    written = find(name).written
    return len(written.wrong) + runs * len(written.right) + len(mutants_in(find(name)))


def _percent(marks: Sequence[bool]) -> float:
    return 100.0 * sum(marks) / len(marks) if marks else 0.0

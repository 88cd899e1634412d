"""Judge mutants of the library's own answers: each one that a check accepts shows a mistake that the check overlooks.

`python -m workshop.mutants [exercise…]` judges those of the exercises named, or of all. A survivor is
either killed by a better check, or it does what the original does; then `tests/mutants/equivalent.txt` says why.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.judge import RanksLike, fresh_seed, judge
from course_utils.checks.registry import declared, find, reference
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT
from workshop.mutants.mutate import Mutant, mutants

PATIENCE = 1.0
SHARE = 1 / 3
"""Of the seconds that a learner has before a case is ended: an endless loop is known for one sooner."""
EQUIVALENT = ROOT / "tests" / "mutants" / "equivalent.txt"


@dataclass
class Tally:
    """What became of the mutants of one exercise.

    Attributes:
        killed: refused, and not listed as equivalent.
        equivalent: accepted, and listed with a reason.
        survived: accepted, and nobody has said why.
        not_equivalent: refused although listed: the line in the list is wrong.
    """

    exercise: str
    killed: list[Mutant] = field(default_factory=list)
    equivalent: list[Mutant] = field(default_factory=list)
    survived: list[Mutant] = field(default_factory=list)
    not_equivalent: list[Mutant] = field(default_factory=list)

    @property
    def explained(self) -> bool:
        """Whether nothing is left to look into."""
        return not self.survived and not self.not_equivalent

    @property
    def share_killed(self) -> float:
        """Percent of those that are not equivalent."""
        wrong = len(self.killed) + len(self.survived) + len(self.not_equivalent)
        return 100.0 * (wrong - len(self.survived)) / wrong if wrong else 100.0


def equivalent(path: Path = EQUIVALENT) -> dict[str, str]:
    """Mutant → reason, from the list: `exercise | line | change` on one line, the reason on the next, indented.

    Raises:
        CourseError: a line is not of this form.
    """
    reasons: dict[str, str] = {}
    key = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" ") and key is not None:
            reasons[key] = f"{reasons[key]} {line.strip()}".strip()
        elif line.count(" | ") >= 2 and not line.startswith(" "):
            key = line.strip()
            reasons[key] = ""
        else:
            raise CourseError(f"{path.name}, line {number}: expected `exercise | line | change` or an indented reason.")
    return reasons


def judged(name: str, ranks: RanksLike, seed: int | None = None, bar: tqdm | None = None) -> Tally:
    """Judge every mutant of one exercise's answer on running ranks.

    Args:
        name: of the exercise.
        seed: of the cases' numbers; None draws new ones for each mutant.
        bar: is moved on by one for each mutant.
    """
    exercise, reasons, tally = find(name), equivalent(), Tally(name)
    for mutant in mutants(reference(find(name))):
        verdict = judge(exercise, mutant.function(), ranks, seed=seed, patience=PATIENCE, limit=SHARE * exercise.limit)
        if str(mutant) in reasons:
            (tally.equivalent if verdict.passed else tally.not_equivalent).append(mutant)
        else:
            (tally.survived if verdict.passed else tally.killed).append(mutant)
        if bar is not None:
            bar.update()
    return tally


def campaign(names: Sequence[str], seed: int | None = None) -> Iterator[Tally]:
    """Judge all mutants of these exercises on four ranks of their own, with a bar on stderr."""
    total = sum(len(mutants(reference(find(name)))) for name in names)
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        with tqdm(total=total, unit=" mutants", file=sys.stderr, leave=False) as bar:
            for name in names:
                bar.set_description(name)
                yield judged(name, ranks, seed, bar)
    finally:
        ranks.stop()


def report(tallies: Sequence[Tally]) -> str:
    """A table, and below it every mutant that somebody has to look into."""
    width = max(len("exercise"), *(len(tally.exercise) for tally in tallies))
    lines = [f"{'exercise':<{width}}  mutants  killed  equivalent  survived"]
    for tally in tallies:
        killed, alike, survived = (len(some) for some in (tally.killed, tally.equivalent, tally.survived))
        killed += len(tally.not_equivalent)
        lines.append(f"{tally.exercise:<{width}}  {killed + alike + survived:7}  {killed:6}  {alike:10}  {survived:8}")
    lines += [f"survived: {mutant}" for tally in tallies for mutant in tally.survived]
    lines += [f"listed as equivalent, but refused: {one}" for tally in tallies for one in tally.not_equivalent]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge and report; 1 where a mutant survived that is not listed, or a listed one did not."""
    parser = argparse.ArgumentParser(prog="python -m workshop.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", help="names of exercises; without any, all of them")
    parser.add_argument("--seed", type=int, default=None, help="of the cases' numbers (or COURSE_SEED)")
    options = parser.parse_args(arguments)
    names = [find(name).name for name in options.exercises] or [exercise.name for exercise in declared()]
    seed = fresh_seed() if options.seed is None else options.seed
    tallies = list(campaign(names, seed))
    print(report(tallies))
    print(f"COURSE_SEED={seed}")
    return 0 if all(tally.explained for tally in tallies) else 1

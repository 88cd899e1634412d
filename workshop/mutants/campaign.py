"""Judge mutants of right answers: each one that a check accepts shows a mistake that the check overlooks.

`python -m workshop.mutants [exercise…]` judges those of the exercises named, or of all. A survivor is either killed by
a better check, or it does what the original does: then it is listed in `explained/`, with the reason.
"""

import argparse
import ast
import contextlib
import inspect
import io
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.exercise import Exercise
from course_utils.checks.judge import Options, fresh_seed, verdict_on_these
from course_utils.checks.registry import declared, find, reference
from course_utils.checks.sample_answers import Program
from course_utils.ranks.interface import RanksInterface
from workshop.mutants.explanations import explained
from workshop.mutants.mutate import LIBRARY, Mutant, mutants_of, pairs_of

PATIENCE = 1.0
SHARE = 1 / 3
"""Of the seconds that a learner has before a case is ended: an endless loop is known for one sooner."""


@dataclass
class Tally:
    """What became of the mutants of one exercise.

    Attributes:
        killed: rejected, and no explanation calls it right.
        equivalent: accepted, and explained.
        survived: accepted, and not explained.
        not_equivalent: rejected although an explanation calls it right.
    """

    exercise: str
    killed: list[Mutant] = field(default_factory=list)
    equivalent: list[Mutant] = field(default_factory=list)
    survived: list[Mutant] = field(default_factory=list)
    not_equivalent: list[Mutant] = field(default_factory=list)

    @property
    def is_explained(self) -> bool:
        """Whether nothing is left to look into."""
        return not self.survived and not self.not_equivalent

    @property
    def share_killed(self) -> float:
        """Percent of those that are not equivalent."""
        wrong = len(self.killed) + len(self.survived) + len(self.not_equivalent)
        return 100.0 * (wrong - len(self.survived)) / wrong if wrong else 100.0


def originals(exercise: Exercise) -> list[Program]:
    """The right programs whose mutants are judged, and the library's own where none of them is written like it."""
    right = list(exercise.written.right)
    library = _library(exercise)
    return right if bare(library.source) in {bare(program.source) for program in right} else [library, *right]


def _library(exercise: Exercise) -> Program:
    return Program(exercise.name, LIBRARY, textwrap.dedent(inspect.getsource(reference(exercise))))


def mutants_in(exercise: Exercise, pairs: int = 0, seed: int = 0) -> list[Mutant]:
    """All mutants of an exercise's right programs, and of each this many pairs; none where budgets are the question."""
    if exercise.budgets:
        return []
    module = vars(sys.modules[reference(exercise).__module__])
    found = []
    for program in originals(exercise):
        names = module if program.name == LIBRARY else None
        found += mutants_of(program.source, exercise.name, program.name, names)
        found += pairs_of(program.source, exercise.name, program.name, pairs, seed, names)
    return found


def bare(source: str) -> str:
    """What a program does, without imports, annotations, docstrings and layout: equal for equal programs."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body = node.body[1:]
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [statement for statement in body if not isinstance(statement, ast.Pass)]
        for name in ("annotation", "returns"):
            if hasattr(node, name) and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
    return ast.dump(tree)


def judged(name: str, ranks: RanksInterface, seed: int | None = None, bar: tqdm | None = None, pairs: int = 0) -> Tally:
    """Judge every mutant of an exercise's right programs on running ranks.

    Args:
        name: of the exercise.
        seed: of the cases' numbers; None draws new ones for each mutant.
        bar: is moved on by one for each mutant.
        pairs: how many mutants with two changes, beside, of each program.
    """
    exercise, tally = find(name), Tally(name)
    mutants, reasons = mutants_in(exercise, pairs, seed or 0), explained(exercise)
    known = [*exercise.written.right, *(mutant for mutant in mutants if str(mutant) in reasons)]
    right = {bare(program.source) for program in known}
    for mutant in mutants:
        passed = _passes(exercise, mutant, ranks, seed)
        if bare(mutant.source) in right:
            (tally.equivalent if passed else tally.not_equivalent).append(mutant)
        else:
            (tally.survived if passed else tally.killed).append(mutant)
        if bar is not None:
            bar.update()
    return tally


def _passes(exercise: Exercise, mutant: Mutant, ranks: RanksInterface, seed: int | None) -> bool:
    try:
        function = mutant.function()
    except Exception:  # what it defines beside the function fails already: nobody could hand it in
        return False
    options = Options(seed, PATIENCE, SHARE * exercise.limit, hide=False, search=False)
    return verdict_on_these(exercise, function, ranks, options).passed


def campaign(names: Sequence[str], seed: int | None = None, pairs: int = 0) -> Iterator[Tally]:
    """Judge all mutants of these exercises on four ranks of their own, with a bar on stderr."""
    total = sum(len(mutants_in(find(name), pairs, seed or 0)) for name in names)
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        with tqdm(total=total, unit=" mutants", file=sys.stderr, leave=False) as bar:
            for name in names:
                bar.set_description(name)
                yield judged(name, ranks, seed, bar, pairs)
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
    lines += [f"survived: {mutant.name}: {mutant}" for tally in tallies for mutant in tally.survived]
    lines += [
        f"called right, but rejected: {mutant.name}: {mutant}" for tally in tallies for mutant in tally.not_equivalent
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge and report; 1 where a mutant survived that is not explained, or one that is did not."""
    parser = argparse.ArgumentParser(prog="python -m workshop.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", help="names of exercises; without any, all of them")
    parser.add_argument("--seed", type=int, default=None, help="of the cases' numbers (or COURSE_SEED)")
    parser.add_argument("--pairs", type=int, default=0, help="of each right program also this many with two changes")
    options = parser.parse_args(arguments)
    names = [find(name).name for name in options.exercises] or [exercise.name for exercise in declared()]
    seed = fresh_seed() if options.seed is None else options.seed
    tallies = list(campaign(names, seed, options.pairs))
    print(report(tallies))
    print(f"COURSE_SEED={seed}")
    return 0 if all(tally.is_explained for tally in tallies) else 1

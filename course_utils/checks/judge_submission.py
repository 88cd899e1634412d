"""Judge a notebook exercise by exercise: for `course check NOTEBOOK` and, on ranks in a box, for `course grade`."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from course_utils import settings
from course_utils.checks.hidden_answer import call_without
from course_utils.checks.judge import Options, judge
from course_utils.checks.judging_plan import on_these
from course_utils.checks.registry import check_packages, find, own_answers
from course_utils.checks.submission import Submission, read
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.ranks.engine.notebook_cells import CellFailure, CellsReport, run_cells
from course_utils.ranks.interface import RanksInterface
from course_utils.ranks.run import Attempt
from course_utils.ranks.start import start

CELLS_SECONDS = 180.0
"""For all cells of a notebook together."""


@dataclass(frozen=True)
class JudgedExercise:
    """What became of one exercise of a submission.

    Attributes:
        line: the verdict on it, or why there can be none.
        question: the one with which the line ends; "" without one.
    """

    exercise: str
    result: Result
    line: str
    question: str = ""


def check_notebook(notebook: Path, ranks: int) -> Iterator[JudgedExercise]:
    """Judge each function with which the notebook answers an exercise, on ranks of its own, one after the other.

    Args:
        notebook: its cells are run as whoever calls this, in an empty folder and without a box.
        ranks: how many to start; they are ended afterwards, and a learner's running ranks are left alone.

    Raises:
        CourseError: the file is not a notebook, or answers no exercise.
    """
    submission = read(notebook)
    with _own_ranks(ranks) as running:
        yield from judge_exercises(submission, submission.answered, lambda: running)


def judge_exercises(
    submission: Submission,
    exercises: Iterable[str],
    ranks: Callable[[], RanksInterface],
    others: Callable[[], RanksInterface] | None = None,
) -> Iterator[JudgedExercise]:
    """Judge exercises of a submission, in their order.

    Args:
        submission: the notebook.
        exercises: their names; one that the submission does not answer is not begun.
        ranks: gives those on which the notebook's cells run, and its answers.
        others: gives those on which programs with known mistakes run; None: on `ranks` too.
    """
    hidden = own_answers(since=min(submission.lessons))

    def judged(name: str, result: Result, text: str) -> JudgedExercise:
        return JudgedExercise(name, result, f"{result} {name}: {text}")

    ran = RanCells()
    for name in exercises:
        exercise = find(name)
        running = _WithoutOwnAnswers(ranks(), hidden)
        search_ranks = (lambda: _WithoutOwnAnswers(others(), hidden)) if others else None
        ran = ran if ran.trouble else _run_all_cells(submission, running)
        if not ran.trouble and not ran.has(name, submission):
            undefined = submission.undefined(name, ran.failures)
            yield judged(name, undefined.result, str(undefined))
            continue
        try:
            if ran.trouble:
                raise CourseError(ran.trouble)
            with _checks_that_travel():
                stages = [on_these(exercise, running, search_ranks)]
                verdict = judge(exercise, submission.answer(name), stages, Options(hide=False))
        except CourseError as error:
            yield judged(name, Result.WRONG, str(error))
        except Exception as error:  # what came back was made to confuse the checks
            yield judged(name, Result.WRONG, f"its results cannot be judged ({type(error).__name__})")
        else:
            yield JudgedExercise(name, verdict.result, str(verdict), verdict.question)


@dataclass(frozen=True)
class RanCells:
    """What the ranks say of a notebook's cells.

    Attributes:
        trouble: what went wrong with all of it; "" where the cells ran to the end.
        defined: names of functions that some rank has.
        checked: exercises of which some rank was given a function.
        failures: statements that ended with an error.
    """

    trouble: str = ""
    defined: frozenset[str] = frozenset()
    checked: frozenset[str] = frozenset()
    failures: tuple[CellFailure, ...] = ()

    def has(self, exercise: str, submission: Submission) -> bool:
        """Whether there is a function that can be judged."""
        return exercise in self.checked or submission.answers.get(exercise) in self.defined


def _run_all_cells(submission: Submission, running: RanksInterface) -> RanCells:
    """Run the notebook's cells on all ranks that have not run them, before a check and its limits."""
    arguments = [(submission.cells, tuple(submission.answers.values()))] * running.world_size
    try:
        with _checks_that_travel():
            ran = running.attempt(run_cells, arguments, with_comm=False, patience=CELLS_SECONDS, limit=CELLS_SECONDS)
    except CourseError as error:
        return RanCells(str(error))
    if ran.trouble:
        return RanCells(f"the notebook's cells do not run to the end: {ran.trouble.strip()}")
    reports = [reply.value for reply in ran.replies if isinstance(reply.value, CellsReport)]
    return RanCells(
        defined=frozenset(name for report in reports for name in _each(report.defined, str)),
        checked=frozenset(name for report in reports for name in _each(report.checked, str)),
        failures=tuple(failure for report in reports for failure in _each(report.failures, CellFailure)),
    )


def _each(values: Any, kind: type) -> list:
    """Those that are of a kind, of values that came from the ranks of a stranger."""
    return [value for value in values if isinstance(value, kind)] if isinstance(values, tuple) else []


class _WithoutOwnAnswers:
    """Ranks on which the course's own answers cannot be called. Contained ranks do not even have them on their disk."""

    def __init__(self, ranks: RanksInterface, hidden: Sequence[str]) -> None:
        self.world_size = ranks.world_size
        self._ranks, self._hidden = ranks, hidden

    def _hiding(self, function: Callable) -> Callable:
        return functools.partial(call_without, self._hidden, function)

    def attempt(self, function: Callable, arguments: Sequence[tuple], **options: Any) -> Attempt:
        """As the ranks' own."""
        return self._ranks.attempt(self._hiding(function), arguments, **options)

    def attempt_each(self, tasks: Sequence[tuple[Callable, tuple]], **options: Any) -> list[Attempt]:
        """As the ranks' own."""
        return self._ranks.attempt_each([(self._hiding(function), own) for function, own in tasks], **options)


@contextlib.contextmanager
def _checks_that_travel() -> Iterator[None]:
    """A case's harness travels to the ranks, which have nothing of the checks."""
    packages = check_packages()
    for package in packages:
        cloudpickle.register_pickle_by_value(package)
    try:
        yield
    finally:
        for package in packages:
            cloudpickle.unregister_pickle_by_value(package)


@contextlib.contextmanager
def _own_ranks(number: int) -> Iterator[RanksInterface]:
    """Ranks in a folder of their own, ended with it."""
    with tempfile.TemporaryDirectory(prefix="course-check-") as folder, settings.RUNTIME.temporarily(folder):
        ranks = start(number)
        try:
            yield ranks
        finally:
            ranks.stop()

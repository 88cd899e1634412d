"""Judge a notebook exercise by exercise: for `course check NOTEBOOK` and, on ranks in boxes, for `course grade`."""

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from course_utils.checks.exercise import Exercise
from course_utils.checks.judge import judge
from course_utils.checks.own_answer import call_without
from course_utils.checks.registry import check_packages, find, own_answers
from course_utils.checks.run_cases import RanksLike
from course_utils.checks.submission import Submission, read
from course_utils.checks.verdict import FAILED, NOT_BEGUN, Verdict
from course_utils.errors import CourseError
from course_utils.ranks.engine.notebook_cells import run_cells
from course_utils.ranks.start import start

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

CELLS_SECONDS = 180.0
"""For all cells of a notebook together."""


def check_notebook(notebook: Path, ranks: int, tell: Callable[[object], None]) -> list[Verdict]:
    """Judge each function with which the notebook answers an exercise, on ranks of its own.

    Args:
        notebook: its cells are run as whoever calls this, in an empty folder and without a box.
        ranks: how many to start; they are ended afterwards, and a learner's running ranks are left alone.
        tell: called with each verdict as soon as there is one.

    Raises:
        CourseError: the file is not a notebook, or answers no exercise.
    """
    submission = read(notebook)
    verdicts = []
    with _own_ranks(ranks) as running:
        for verdict in verdicts_on(submission, submission.answered, lambda _: running):
            verdicts.append(verdict)
            tell(verdict)
    return verdicts


def verdicts_on(
    submission: Submission,
    exercises: Iterable[str],
    ranks: Callable[[Exercise], RanksLike],
    others: Callable[[Exercise], RanksLike] | None = None,
) -> Iterator[Verdict]:
    """The verdicts on exercises of a submission, in their order, as they come.

    Args:
        submission: the notebook.
        exercises: their names; one that the submission does not answer is not begun.
        ranks: gives those on which the notebook's cells run, and its answer to this exercise.
        others: gives those on which programs with known mistakes run; None: on `ranks` too.
    """
    hidden = own_answers(since=min(submission.lessons))
    trouble = ""  # with the cells
    for name in exercises:
        exercise = find(name)
        running = _WithoutOwnAnswers(ranks(exercise), hidden)
        trouble = trouble or _run_all_cells(submission, running)
        if name not in submission.answers:
            yield Verdict(NOT_BEGUN, name, "not in this notebook, or its cell cannot be read")
        elif trouble:
            yield Verdict(FAILED, name, trouble)
        else:
            apart = others and (lambda exercise=exercise: _WithoutOwnAnswers(others(exercise), hidden))
            yield _verdict_on(exercise, submission, running, apart)


def _verdict_on(
    exercise: Exercise, submission: Submission, running: RanksLike, others: Callable[[], RanksLike] | None
) -> Verdict:
    try:
        with _checks_that_travel():
            return judge(exercise, submission.answer(exercise.name), running, hide=False, others=others)
    except CourseError as error:
        return Verdict(FAILED, exercise.name, str(error))
    except Exception as error:  # what came back was made to confuse the checks
        return Verdict(FAILED, exercise.name, f"its results cannot be judged ({type(error).__name__})")


def _run_all_cells(submission: Submission, running: RanksLike) -> str:
    """Run the notebook's cells on all ranks that have not run them, before a check and its limits.

    Says what went wrong with all of it.
    """
    arguments = [(submission.cells,)] * running.world_size
    try:
        with _checks_that_travel():
            ran = running.attempt(run_cells, arguments, with_comm=False, patience=CELLS_SECONDS, limit=CELLS_SECONDS)
    except CourseError as error:
        return str(error)
    return f"the notebook's cells do not come to their end: {ran.trouble.strip()}" if ran.trouble else ""


class _WithoutOwnAnswers:
    """Ranks on which the course's own answers cannot be called. Contained ranks do not even have them on their disk."""

    def __init__(self, ranks: RanksLike, hidden: Sequence[str]) -> None:
        self.world_size = ranks.world_size
        self._ranks, self._hidden = ranks, hidden

    def _hiding(self, function: Callable) -> Callable:
        return functools.partial(call_without, self._hidden, function)

    def attempt(self, function: Callable, arguments: list[tuple], **options: Any) -> Any:
        """As the ranks' own."""
        return self._ranks.attempt(self._hiding(function), arguments, **options)

    def attempt_each(self, tasks: list[tuple[Callable, tuple]], **options: Any) -> list:
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
def _own_ranks(number: int) -> "Iterator[Ranks]":
    """Ranks in a folder of their own, ended with it."""
    before = os.environ.get("COURSE_RUNTIME")
    with tempfile.TemporaryDirectory(prefix="course-check-") as folder:
        os.environ["COURSE_RUNTIME"] = folder
        try:
            ranks = start(number)
            try:
                yield ranks
            finally:
                ranks.stop()
        finally:
            os.environ.pop("COURSE_RUNTIME") if before is None else os.environ.update(COURSE_RUNTIME=before)

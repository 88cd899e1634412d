"""One submission judged: its exercises in order, on contained ranks, each with a mark and a verdict.

It runs in a process of its own (`grading_process`), which a submission may break.
"""

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle

from course_utils.checks.judge import Options, judge
from course_utils.checks.judging_plan import on_these
from course_utils.checks.registry import check_packages, find
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.ranks.ranks import Ranks
from course_utils.teacher.answer import Answer
from course_utils.teacher.containment import SECONDS, contained_ranks
from course_utils.teacher.notebook_cells import run_cells
from course_utils.teacher.submission import Submission, read

LONGEST = 4000
"""Letters of a verdict."""
CELLS_SECONDS = 180.0
"""For all cells of a notebook together."""


@dataclass(frozen=True)
class Mark:
    """One line of the marks: whether an answer is right, and the verdict that says why.

    Attributes:
        exercise: "" where the file is not a notebook, or answers none.
        result: a file without answers is wrong, too.
        question: the one that the verdict ends with; "" without one.
        boxed: whether the answer ran in a box.
    """

    submission: str
    exercise: str
    result: Result
    verdict: str
    question: str = ""
    boxed: bool = True

    @property
    def mark(self) -> int:
        """1 for a right answer, else 0."""
        return int(self.result == Result.RIGHT)


def printable(text: str) -> str:
    """One line, without what a terminal would take for an instruction."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Grading(contextlib.ExitStack):
    """Judges submissions one after the other, each on ranks of its own.

    The programs with known mistakes run on ranks on which no submission has run, so that nobody sees them. These start
    when the first answer is wrong, and serve all submissions that begin with the same lesson.
    """

    def __init__(self, ranks: int, boxed: bool) -> None:
        super().__init__()
        self._number, self._boxed = ranks, boxed
        self._of_mistakes: dict[tuple[str, bool], Ranks] = {}

    def marks_of(self, notebook: Path, name: str) -> Iterator[list[str] | Mark]:
        """First the exercises that will get a mark, then the marks, as they come."""
        try:
            submission = replace(read(notebook), name=name)
        except CourseError as error:
            yield [""]
            text = f"{Result.WRONG} {error}".replace(str(notebook), name)
            yield self._mark(name, "", Result.WRONG, text)
            return
        yield submission.expected
        deadline = time.monotonic() + SECONDS
        with contextlib.ExitStack() as until_judged:

            @functools.cache
            def running(apart: bool) -> Ranks:
                options = (min(submission.lessons), self._boxed, apart)
                return until_judged.enter_context(contained_ranks(self._number, deadline, *options))

            trouble = ""  # with the cells
            for exercise in submission.expected:
                ranks = running(apart=not find(exercise).shares_files)
                trouble = trouble or _run_all_cells(submission, ranks)
                yield self._mark(name, exercise, *self._judged(exercise, submission, ranks, trouble))

    def _mark(self, submission: str, exercise: str, result: Result, verdict: str, question: str = "") -> Mark:
        """A mark, with so much of the verdict as a table can hold."""
        return Mark(submission, exercise, result, printable(verdict[:LONGEST]), question[:LONGEST], self._boxed)

    def _judged(self, name: str, submission: Submission, running: Ranks, trouble: str) -> tuple[Result, str, str]:
        """The result, the verdict in words, and the question in it."""
        function = submission.answers.get(name)
        if function is None:
            text = f"{name}: not in this notebook, or its cell cannot be read"
            return Result.NOT_BEGUN, f"{Result.NOT_BEGUN} {text}", ""
        answer = Answer(name, function, submission.cells, submission.signatures.get(function))
        others = functools.partial(self._ranks_of_mistakes, submission, not find(name).shares_files)
        numbers = Options(seed=int.from_bytes(os.urandom(4), "little"))
        try:
            if trouble:
                raise CourseError(trouble)
            with _checks_that_travel():
                verdict = judge(find(name), answer, [on_these(find(name), running, others)], numbers)
        except CourseError as error:
            return Result.WRONG, f"{Result.WRONG} {name}: {error}", ""
        except Exception as error:  # what came back was made to confuse the checks
            text = f"{name}: its results cannot be judged ({type(error).__name__})"
            return Result.WRONG, f"{Result.WRONG} {text}", ""
        return verdict.result, str(verdict), verdict.question

    def _ranks_of_mistakes(self, submission: Submission, apart: bool) -> Ranks:
        """They see what the submission sees."""
        lesson = min(submission.lessons)
        if (lesson, apart) not in self._of_mistakes:
            ranks = contained_ranks(self._number, since=lesson, boxed=self._boxed, apart=apart)
            self._of_mistakes[lesson, apart] = self.enter_context(ranks)
        return self._of_mistakes[lesson, apart]


def _run_all_cells(submission: Submission, running: Ranks) -> str:
    """Run the notebook's cells on all ranks that have not run them, before a check and its limits.

    Says what went wrong with all of it.
    """
    arguments = [(submission.cells,)] * running.world_size
    try:
        ran = running.attempt(run_cells, arguments, with_comm=False, patience=CELLS_SECONDS, limit=CELLS_SECONDS)
    except CourseError as error:
        return str(error)
    return f"the notebook's cells do not come to their end: {ran.trouble.strip()}" if ran.trouble else ""


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

"""One submission judged: its exercises in order, on contained ranks, each with a mark and a verdict.

It runs in a process of its own (`grading_process`), which a submission may break.
"""

import contextlib
import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from course_utils.checks.judge_submission import judge_exercises
from course_utils.checks.submission import read
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.ranks.ranks import Ranks
from course_utils.teacher.containment import SECONDS, contained_ranks

LONGEST = 4000
"""Letters of a verdict."""


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
        self._of_mistakes: dict[str, Ranks] = {}

    def marks_of(self, notebook: Path, name: str) -> Iterator[list[str] | Mark]:
        """First the exercises that will get a mark, then the marks, as they come."""
        try:
            submission = replace(read(notebook), name=name)
        except CourseError as error:
            yield [""]
            yield self._mark(name, "", Result.WRONG, f"{Result.WRONG} {error}".replace(str(notebook), name))
            return
        yield submission.expected
        lesson, deadline = min(submission.lessons), time.monotonic() + SECONDS
        with contextlib.ExitStack() as until_judged:

            @functools.cache
            def ranks() -> Ranks:
                return until_judged.enter_context(contained_ranks(self._number, deadline, lesson, self._boxed))

            def others() -> Ranks:
                return self._ranks_of_mistakes(lesson)

            for found in judge_exercises(submission, submission.expected, ranks, others):
                yield self._mark(name, found.exercise, found.result, found.line, found.question)

    def _mark(self, submission: str, exercise: str, result: Result, verdict: str, question: str = "") -> Mark:
        """A mark, with so much of the verdict as a table can hold."""
        return Mark(submission, exercise, result, printable(verdict[:LONGEST]), question[:LONGEST], self._boxed)

    def _ranks_of_mistakes(self, lesson: str) -> Ranks:
        """They see what the submission sees."""
        if lesson not in self._of_mistakes:
            ranks = contained_ranks(self._number, since=lesson, boxed=self._boxed)
            self._of_mistakes[lesson] = self.enter_context(ranks)
        return self._of_mistakes[lesson]

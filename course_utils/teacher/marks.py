"""Marks for submissions: each exercise judged on contained ranks, and the table that says so."""

import contextlib
import csv
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.checks.registry import check_packages, find
from course_utils.checks.verdict import FAILED, NOT_BEGUN, PASSED
from course_utils.errors import CourseError
from course_utils.teacher.answer import Answer
from course_utils.teacher.handed_in import names_of
from course_utils.teacher.submission import Submission, read

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks


@dataclass(frozen=True)
class Mark:
    """One line of the marks: 1 for a right answer, else 0, and the verdict that says why.

    Attributes:
        exercise: "" where the file is no notebook, or answers none.
        question: the one that the verdict ends with; "" without one.
    """

    submission: str
    exercise: str
    mark: int
    verdict: str
    question: str = ""


def grade_each(notebooks: Sequence[Path], ranks: int = 4, hide: Iterable[Path] = ()) -> Iterator[list[Mark]]:
    """Mark every exercise of the lessons that a notebook answers, one notebook after the other.

    Args:
        notebooks: the submissions; each gets fresh ranks and fresh numbers.
        ranks: how many each is run on.
        hide: further files that submissions must not read, beside each other.

    Raises:
        CourseError: contained ranks do not start on this machine; that is no submission's fault.
    """
    hidden = [path.resolve() for path in (*notebooks, *hide) if path.exists()]
    with _OwnRanks(ranks) as own:
        for notebook, name in zip(notebooks, names_of(notebooks)):
            try:
                submission = replace(read(notebook), name=name)
            except CourseError as error:
                yield [Mark(name, "", 0, _harmless(f"{FAILED} {error}".replace(str(notebook), name)))]
            else:
                yield _marks_of(submission, ranks, hidden, own)


class _OwnRanks(contextlib.ExitStack):
    """Ranks on which no submission has run: there the programs with known mistakes are run, and nobody sees them.

    They start when the first answer is wrong, and serve all submissions that begin with the same lesson.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._started: dict[str, Ranks] = {}

    def since(self, lesson: str) -> "Ranks":
        """The ranks that see what a submission sees whose first lesson is `lesson`."""
        from course_utils.teacher.containment import contained_ranks

        if lesson not in self._started:
            self._started[lesson] = self.enter_context(contained_ranks(self._number, since=lesson))
        return self._started[lesson]


def scratch_of(file: Path) -> Path:
    """The file beside the table of marks that is written first."""
    return file.with_name(f".{file.name}.new")


def write_marks(marks: list[Mark], file: Path) -> None:
    """Write the marks as a table that spreadsheets open, in one step: what stood in the file before is gone."""
    scratch = scratch_of(file)
    with scratch.open(
        "w", newline="", encoding="utf-8-sig"
    ) as table:  # without that mark Excel takes ✓ for three letters
        writer = csv.writer(table)
        writer.writerow(["submission", "exercise", "mark", "verdict"])
        writer.writerows([_cell(one.submission), one.exercise, one.mark, _cell(one.verdict)] for one in marks)
    os.replace(scratch, file)


def _cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    text = _harmless(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _harmless(text: str) -> str:
    """One line, without what a terminal would take for an instruction."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _marks_of(submission: Submission, ranks: int, hidden: list[Path], own: _OwnRanks) -> list[Mark]:
    from course_utils.teacher.containment import SECONDS, contained_ranks

    marks: list[Mark] = []
    expected, deadline = submission.expected, time.monotonic() + SECONDS
    if submission.refusals:
        return [_mark(submission, exercise, f"{FAILED} refused: {submission.refusals[0]}") for exercise in expected]
    while len(marks) < len(expected):  # an offence costs its exercise the mark; the next ones get untouched ranks
        with contained_ranks(ranks, hidden, deadline, min(submission.lessons)) as running:
            marks += _until_an_offence(submission, expected[len(marks) :], running, own)
    return marks


def _mark(submission: Submission, exercise: str, verdict: str, question: str = "") -> Mark:
    """A verdict's mark: what begins with ✓ is right."""
    return Mark(submission.name, exercise, int(verdict.startswith(PASSED)), _harmless(verdict), question)


def _until_an_offence(submission: Submission, exercises: list[str], running: "Ranks", own: _OwnRanks) -> list[Mark]:
    marks = []
    for exercise in exercises:
        if submission.answers.get(exercise):
            marks.append(_mark(submission, exercise, *_judged(exercise, submission, running, own)))
        else:
            missing = f"{NOT_BEGUN} {exercise}: not in this notebook, or its cell cannot be read"
            marks.append(_mark(submission, exercise, missing))
        if running.connection.offences:
            break
    return marks


def _judged(name: str, submission: Submission, running: "Ranks", own: _OwnRanks) -> tuple[str, str]:
    """The verdict in words, and the question in it."""
    import cloudpickle

    from course_utils.checks.judge import judge

    packages = check_packages()
    for package in packages:  # a case's harness travels; the ranks see nothing of the checks
        cloudpickle.register_pickle_by_value(package)
    function = submission.answers[name]
    answer = Answer(function, submission.cells, submission.signatures.get(function))
    offences: list[str] = running.connection.offences
    try:
        seed = int.from_bytes(os.urandom(4), "little")
        verdict = judge(find(name), answer, running, seed=seed, others=lambda: own.since(min(submission.lessons)))
    except CourseError as error:
        return f"{FAILED} {name}: {offences[0] if offences else error}", ""
    except Exception as error:  # what came back was made to confuse the checks
        return f"{FAILED} {name}: its results cannot be judged ({type(error).__name__})", ""
    finally:
        for package in packages:
            cloudpickle.unregister_pickle_by_value(package)
    if offences:
        return f"{FAILED} {name}: refused: {offences[0]}", ""
    return str(verdict), verdict.details.get("question") or ""

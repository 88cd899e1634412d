"""Marks for submissions: each exercise judged on contained ranks, and the table that says so."""

import csv
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.checks.registry import find
from course_utils.checks.verdict import FAILED, NOT_BEGUN, PASSED
from course_utils.errors import CourseError
from course_utils.grade.submission import Submission, read

if TYPE_CHECKING:
    from course_utils.cluster import Ranks


@dataclass(frozen=True)
class Mark:
    """One line of the marks: 1 for a right answer, else 0, and the verdict that says why."""

    submission: str
    exercise: str
    mark: int
    verdict: str


def grade(
    notebooks: Iterable[Path],
    ranks: int = 4,
    tell: Callable[[str], None] = lambda line: None,
    hide: Iterable[Path] = (),
) -> list[Mark]:
    """Mark every exercise of the lessons that each notebook answers.

    Args:
        notebooks: the submissions; each gets fresh ranks and fresh numbers.
        ranks: how many each is run on.
        tell: called with a line for each mark as soon as there is one.
        hide: further files that submissions must not read, beside each other.

    Raises:
        CourseError: contained ranks do not start on this machine; that is no submission's fault.
    """
    notebooks = [notebook.resolve() for notebook in notebooks]
    hidden = [path.resolve() for path in (*notebooks, *hide) if path.exists()]
    marks = []
    for notebook in notebooks:
        try:
            submission = read(notebook)
        except CourseError as error:
            found = [Mark(notebook.name, "", 0, f"{FAILED} {error}")]
        else:
            found = _marks_of(submission, ranks, hidden)
        for mark in found:
            tell(f"{mark.mark}  {mark.submission}  {mark.verdict}")
        marks += found
    return marks


def write_marks(marks: list[Mark], file: Path) -> None:
    """Write the marks as a table, in one step: what stood in the file before is gone."""
    scratch = file.with_name(f".{file.name}.new")
    with scratch.open("w", newline="", encoding="utf-8") as table:
        writer = csv.writer(table)
        writer.writerow(["submission", "exercise", "mark", "verdict"])
        writer.writerows([one.submission, one.exercise, one.mark, _harmless(one.verdict)] for one in marks)
    os.replace(scratch, file)


def _harmless(text: str) -> str:
    """One line, without what a terminal or a spreadsheet would take for an instruction."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _marks_of(submission: Submission, ranks: int, hidden: list[Path]) -> list[Mark]:
    from course_utils.grade.contained import SECONDS, contained_ranks

    marks: list[Mark] = []
    expected, deadline = submission.expected, time.monotonic() + SECONDS
    if submission.refusals:
        return [_mark(submission, exercise, 0, f"{FAILED} refused: {submission.refusals[0]}") for exercise in expected]
    while len(marks) < len(expected):  # an offence costs its exercise the mark; the next ones get untouched ranks
        with contained_ranks(ranks, hidden, deadline) as running:
            marks += _until_an_offence(submission, expected[len(marks) :], running)
    return marks


def _mark(submission: Submission, exercise: str, number: int, verdict: str) -> Mark:
    return Mark(submission.name, exercise, number, _harmless(verdict))


def _until_an_offence(submission: Submission, exercises: list[str], running: "Ranks") -> list[Mark]:
    marks = []
    for exercise in exercises:
        number, verdict = 0, f"{NOT_BEGUN} {exercise}: not in this notebook, or its cell cannot be read"
        if submission.answers.get(exercise):
            number, verdict = _judge(exercise, submission, running)
        marks.append(_mark(submission, exercise, number, verdict))
        if running.connection.offences:
            break
    return marks


def _judge(name: str, submission: Submission, running: "Ranks") -> tuple[int, str]:
    import cloudpickle

    from course_utils import checks
    from course_utils.checks.judging import judge
    from course_utils.grade.answer import Answer

    cloudpickle.register_pickle_by_value(checks)  # a case's harness travels; the ranks see nothing of the checks
    function = submission.answers[name]
    answer = Answer(function, submission.cells, submission.signatures.get(function))
    offences: list[str] = running.connection.offences
    try:
        verdict = judge(find(name), answer, running, seed=int.from_bytes(os.urandom(4), "little"))
    except CourseError as error:
        return 0, f"{FAILED} {name}: {offences[0] if offences else error}"
    except Exception as error:  # what came back was made to confuse the checks
        return 0, f"{FAILED} {name}: its results cannot be judged ({type(error).__name__})"
    finally:
        cloudpickle.unregister_pickle_by_value(checks)
    if offences:
        return 0, f"{FAILED} {name}: refused: {offences[0]}"
    return int(verdict.mark == PASSED), str(verdict)

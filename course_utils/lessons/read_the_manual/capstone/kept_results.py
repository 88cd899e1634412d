"""Capstones that were judged, kept among the records of a learner's progress for `course.report()`."""

import dataclasses
import math

from course_utils.checks.progress_records import SESSION, read, read_all
from course_utils.checks.verdict import Result
from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult

KEY, FORM = "capstone_run", 2
"""Form 1 had seconds in place of image passes."""
EXERCISE = "capstone"
TRIED = "capstone_tried"
"""The key of a record of `tried`: whether it missed what is asked for."""


def keep(result: CapstoneResult) -> None:
    """Write a result to the records, under $COURSE_HOME."""
    SESSION.write(**{KEY: {"form": FORM, **dataclasses.asdict(result)}})


def note_trial(missed: bool) -> None:
    """Write to the records that a learner has tried a training run, and whether it missed what is asked for."""
    SESSION.write(**{TRIED: {"missed": missed}})


def has_failed() -> bool:
    """Whether the learner has made an attempt that failed: a check that found something wrong, or such a trial."""
    return any(_failed(record) for record in read_all())


def _failed(record: dict) -> bool:
    trial = record.get(TRIED)
    if isinstance(trial, dict):
        return bool(trial.get("missed"))
    return record.get("exercise") == EXERCISE and record.get("mark") == Result.WRONG


def kept() -> list[CapstoneResult]:
    """All results that can be read, the earlier ones first."""
    found = []
    for record in read().records:
        entry = record.get(KEY)
        if isinstance(entry, dict) and entry.get("form") == FORM:
            result = _result(entry)
            found += [result] if result else []
    return found


def _result(record: dict) -> CapstoneResult | None:
    """What a record holds; None where it is broken."""
    try:
        result = CapstoneResult(**{field.name: record[field.name] for field in dataclasses.fields(CapstoneResult)})
        numbers = [result.accuracy, result.naive_sent, *result.sent, *result.passes]
        whole = all(math.isfinite(number) and number >= 0 for number in numbers)
        return result if whole and result.sent and result.passes else None
    except (KeyError, TypeError, ValueError):
        return None

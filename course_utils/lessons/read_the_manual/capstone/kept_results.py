"""Capstones that were judged, kept among the records of a learner's progress for `course.report()`."""

import dataclasses
import math

from course_utils.checks.progress_records import SESSION, read
from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult

KEY, FORM = "capstone_run", 1


def keep(result: CapstoneResult) -> None:
    """Write a result to the records, under $COURSE_HOME."""
    SESSION.write(**{KEY: {"form": FORM, **dataclasses.asdict(result)}})


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
        numbers = [result.accuracy, result.seconds, result.naive_sent, result.naive_seconds, *result.sent]
        whole = all(math.isfinite(number) and number >= 0 for number in numbers)
        return result if whole and result.sent and result.naive_seconds > 0 else None
    except (KeyError, TypeError, ValueError):
        return None

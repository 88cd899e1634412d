"""When work was handed in, from Moodle's grading worksheet: a date in words, in English or German.

The worksheet's column is written by Moodle's `userdate` in the format `strftimedaydatetime`, which differs by language:
"Tuesday, 3 November 2026, 11:59 PM", "Dienstag, 3. November 2026, 23:59". `time.strptime` reads only the names of the
months of the locale that the process runs in.
"""

import re
import time
from collections.abc import Iterator

from course_utils.teacher.handed_in.class_list import ClassList, Person

_COLUMNS = ("last modified (submission)", "zuletzt geändert (abgabe)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_GERMAN = {"mär": "mar", "mai": "may", "okt": "oct", "dez": "dec"}
_DATE = re.compile(r"(\d{1,2})\.? (\w{3})\w*\.? (\d{4}),? (\d{1,2}):(\d\d)(?::\d\d)?(?: ?([ap])\.?m)?", re.IGNORECASE)


def submission_times(people: ClassList) -> dict[Person | None, float]:
    """Person → seconds since 1970, for those whose time can be read; empty without such a column."""
    return dict(_times(people))


def _times(people: ClassList) -> Iterator[tuple[Person, float]]:
    column = people.column(_COLUMNS)
    for person in people.people if column else ():
        seconds = seconds_of_date(person.row[column or ""])
        if seconds is not None:
            yield person, seconds


def seconds_of_date(text: str) -> float | None:
    """A date in words as seconds since 1970, or None."""
    found = _DATE.search(text)
    if not found:
        return None
    day, name, year, hour, minute, half = found.groups()
    month = _GERMAN.get(name.casefold(), name.casefold())
    if month not in _MONTHS:
        return None
    hours = int(hour) % 12 + 12 * (half.casefold() == "p") if half else int(hour)
    try:
        return time.mktime((int(year), _MONTHS.index(month) + 1, int(day), hours, int(minute), 0, 0, 0, -1))
    except (ValueError, OverflowError):
        return None

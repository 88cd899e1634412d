"""The clocks of a log: what the time at the beginning of a line means, in seconds since 1970.

Many clocks leave something out. glog and syslog write no year, rich writes no date, and few write their time zone. What
is left out follows from the lines nearby, because a log is written from one end to the other. That is why the standard
library's parsers, which see one time at a time, are not enough.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

DAY = 86400.0
_QUARTER = 900.0
"""Time zones differ by whole quarters of an hour."""
_SLACK = 120.0
"""By how much lines may be written out of order, in seconds."""
_WIDEST = 14 * 3600.0
"""No time zone is further from UTC."""


class Clock(Enum):
    """The form of a time, and so the clock that it is from."""

    ABSOLUTE = auto()
    """Seconds since 1970, or with a time zone."""
    ISO = auto()
    AMERICAN = auto()
    GLOG = auto()
    SYSLOG = auto()
    SHORT = auto()
    """Month and day as numbers."""
    NO_DATE = auto()


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time that a line gives.

    Attributes:
        clock: its form.
        date: year, month and day, as far as the line gives them.
        seconds: since 1970 if the date is complete, otherwise since midnight.
        leads: it is at the beginning of the line, so it surely is the time of the line.
    """

    clock: Clock
    date: tuple[int, ...]
    seconds: float
    leads: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether the line gives the year, too."""
        return self.clock is Clock.ABSOLUTE or len(self.date) == 3


_WINDOW = 120
_TIME = re.compile(r"(?<![\d:.])(\d\d):(\d\d):(\d\d)(?![:\d])(?:[.,](\d{1,9}))?")
_AFTER = re.compile(
    r"(?: ?(?P<half>[AP]M)\b)?(?: ?(?P<zone>Z|UTC|GMT|[+-](?:0\d|1[0-4]):?(?:00|15|30|45))(?!\w))?"
    r"(?: [A-Z]{3,4}\b)?(?: (?P<year>20\d\d)\b)?"
)
_ABSL = re.compile(r"\b[IWEF]0000 00:00:(\d{9,10}\.\d+)")
_EPOCH = re.compile(r"\s*\[?(1[5-9]\d{8}(?:\.\d+)?)\]?(?=\s)")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DATES = (
    (Clock.ISO, re.compile(r"(?<![\w./-])(?P<year>20\d\d)[-/]?(?P<month>\d\d)[-/]?(?P<day>\d\d)[ T_-]$")),
    (Clock.AMERICAN, re.compile(r"(?<![\w./-])(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>20\d\d)[ T,-]+$")),
    (Clock.GLOG, re.compile(r"(?<!\w)[IWEFC](?P<year>20\d\d)?(?P<month>\d\d)(?P<day>\d\d) $")),
    (
        Clock.SYSLOG,
        re.compile(rf"\b(?P<name>{'|'.join(_MONTHS)}) +(?P<day>\d{{1,2}})(?:,? (?P<year>20\d\d),?)? $"),
    ),
    (
        Clock.SYSLOG,
        re.compile(rf"\b(?P<day>\d{{1,2}})[ -/](?P<name>{'|'.join(_MONTHS)})[ -/](?P<year>20\d\d),?[ :]$"),
    ),
    (Clock.SHORT, re.compile(r"(?<![\w./-])(?P<month>\d\d)[-/](?P<day>\d\d) \[?$")),
    (Clock.NO_DATE, re.compile(r"^[\s\[(<]*$")),
)
"""What is before hours, minutes and seconds."""
_BEFORE_CLOCK = re.compile(r"(?:\[[^\]]*\])?\W*(?:\w{1,12}\W+)?|(?:\w{1,20}:){1,4}|.* AT ")
"""A line begins with its clock, or with a word such as INFO and then its clock; Slurm puts it last."""


def stamp_of(text: str, start: int = 0) -> Stamp | None:
    """The time that a line gives, or None. Seconds since boot, as in dmesg, are none.

    Args:
        text: the line.
        start: where the message begins, after the marks that name its writer.
    """
    if text.find(":", start, start + _WINDOW) < 0 and text[start : start + 1] not in ("[", "1", " "):
        return None
    if text.find("0000 00:00:", start, start + _WINDOW) >= 0 and (found := _ABSL.search(text, start)):
        return Stamp(Clock.ABSOLUTE, (), float(found[1]))
    if found := _EPOCH.match(text, start):
        return Stamp(Clock.ABSOLUTE, (), float(found[1]))
    for time in _TIME.finditer(text, start, start + _WINDOW):
        before = text[max(start, time.start() - 24) : time.start()]
        for clock, pattern in _DATES:
            if date := pattern.search(before):
                begins = max(start, time.start() - 24) + date.start()
                leads = _BEFORE_CLOCK.fullmatch(text, start, begins) is not None
                try:
                    return _stamp(clock, date.groupdict(), time, leads)
                except ValueError:
                    return None
    return None


def _stamp(clock: Clock, date: dict[str, str | None], time: re.Match[str], leads: bool) -> Stamp:
    """Raises ValueError if there is no such date or time."""
    hour, minute, second = int(time[1]), int(time[2]), min(int(time[3]), 59)  # 60 is a leap second
    after = _AFTER.match(time.string, time.end())
    half, zone, year = after.group("half", "zone", "year") if after else (None, None, None)
    if half:
        hour = hour % 12 + 12 * (half == "PM")
    within = datetime(2000, 1, 1, hour, minute, second) - datetime(2000, 1, 1)
    seconds = within.total_seconds() + float(f"0.{time[4] or 0}")
    year = date.get("year") or (year if clock is Clock.SYSLOG else None)
    month = _MONTHS[date["name"] or ""] if "name" in date else int(date.get("month") or 0)
    day = int(date.get("day") or 0)
    if not month:
        return Stamp(clock, (), seconds, leads)
    if clock is Clock.AMERICAN and month > 12:
        month, day = day, month
    midnight = datetime(int(year or 2000), month, day, tzinfo=UTC)
    if not year:
        return Stamp(clock, (month, day), seconds, leads)
    seconds += midnight.timestamp()
    if zone:
        hours = re.match(r"([+-]\d\d):?(\d\d)", zone)
        ahead = timedelta(hours=int(hours[1]), minutes=int(hours[1][0] + hours[2])) if hours else timedelta()
        return Stamp(Clock.ABSOLUTE, (), seconds - ahead.total_seconds(), leads)
    return Stamp(clock, (int(year), month, day), seconds, leads)


def times_of(stamps: Sequence[Stamp | None], near: float | None = None) -> list[float | None]:
    """The times that the lines of a file give, in seconds since 1970; None for a line that gives none.

    A clock without a time zone counts as UTC, unless the file has times of both kinds. Only the order and the
    distances of times mean something, if the year is not in the file and `near` is not known.

    Args:
        stamps: what the lines give, in their order.
        near: a time near those of the log, such as that of the last change of the file.
    """
    given = [(index, stamp) for index, stamp in enumerate(stamps) if stamp is not None]
    first = next((at for at, (_, stamp) in enumerate(given) if stamp.is_complete and stamp.leads), None)
    result: list[float | None] = [None] * len(stamps)
    # The first complete date fixes the others: those after it, one by one, and those before it, backwards.
    # Without one, the file's last change is near its last line.
    if first is not None:
        later, earlier, known = given[first:], given[:first][::-1], given[first][1].seconds
    elif near is not None:
        later, earlier, known = [], given[::-1], near
    else:
        later, earlier, known = given, [], _first_time(given)
    for part in (later, earlier):
        before = known
        for index, stamp in part:
            time = _nearest(stamp, before)
            if time is not None and (stamp.leads or abs(time - before) < DAY):
                result[index] = before = time
    _set_zones(given, result)
    return result


def _first_time(given: Iterable[tuple[int, Stamp]]) -> float:
    date = next((stamp.date for _, stamp in given if stamp.date), (1, 1))
    return datetime(2000, *date[-2:], tzinfo=UTC).timestamp()


def _nearest(stamp: Stamp, before: float) -> float | None:
    """The time that a stamp means, if it is as near as possible to a time that is known."""
    if stamp.is_complete:
        return stamp.seconds
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=before)
    times = []
    for step in (-1, 0, 1):
        if not stamp.date:
            midnight = then.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=step)
        else:
            try:
                midnight = datetime(then.year + step, *stamp.date, tzinfo=UTC)
            except ValueError:  # 29 February
                continue
        times.append(midnight.timestamp() + stamp.seconds)
    return min(times, key=lambda time: abs(time - before), default=None)


def _set_zones(given: Sequence[tuple[int, Stamp]], times: list[float | None]) -> None:
    """Set clocks that are whole quarters of an hour apart to the same time zone.

    Of two lines, the second was written later, whichever clock it has. So if a line of clock A follows one of clock B,
    A is ahead of B by no more than the difference that they show; and if it precedes it, by no less.
    """
    clocks = Counter(stamp.clock for index, stamp in given if times[index] is not None)
    if len(clocks) < 2:
        return
    right = Clock.ABSOLUTE if Clock.ABSOLUTE in clocks else clocks.most_common(1)[0][0]
    least = dict.fromkeys(clocks, -float("inf"))
    most = dict.fromkeys(clocks, float("inf"))
    shown = [(stamp.clock, time) for index, stamp in given if (time := times[index]) is not None]
    for (clock, time), (next_clock, next_time) in zip(shown, shown[1:], strict=False):
        if clock is right and next_clock is not right:
            most[next_clock] = min(most[next_clock], next_time - time)
        elif clock is not right and next_clock is right:
            least[clock] = max(least[clock], time - next_time)
    ahead = {
        clock: _offset(least[clock], most[clock], needs_both=right is not Clock.ABSOLUTE)
        for clock in clocks
        if clock is not right
    }
    for index, stamp in given:
        if ahead.get(stamp.clock) and (time := times[index]) is not None:
            times[index] = time - ahead[stamp.clock]


def _offset(least: float, most: float, needs_both: bool) -> float:
    """The smallest whole number of quarters of an hour between two bounds, or 0 if there is none."""
    if needs_both and (least == -float("inf") or most == float("inf")):
        return 0.0
    if least - _SLACK <= 0 <= most + _SLACK:
        return 0.0
    quarters = -((_SLACK - least) // _QUARTER) if least > 0 else (most + _SLACK) // _QUARTER
    offset = quarters * _QUARTER
    return offset if least - _SLACK <= offset <= most + _SLACK and abs(offset) <= _WIDEST else 0.0

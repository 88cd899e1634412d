"""The clocks of a log: what the time at the beginning of a line means."""

import re
from datetime import UTC, datetime

_ISO = re.compile(r"\b(20\d\d)[-/](\d\d)[-/](\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_GLOG = re.compile(r"(?<![\w])[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_ABSL_EPOCH = re.compile(r"\b[IWEF]0000 00:00:(\d{9,10}\.\d+)")


def time_of(text: str, before: float | None = None) -> float | None:
    """The time that a line gives, in seconds since 1970, or None.

    Args:
        text: the line.
        before: the time of a line nearby, from which a clock without a year takes its year.
    """
    if found := _ABSL_EPOCH.search(text):
        return float(found[1])
    try:
        if found := _ISO.search(text):
            *date, part = found.groups()
            return datetime(*map(int, date), tzinfo=UTC).timestamp() + float(f"0.{part or 0}")
        if found := _GLOG.search(text):
            *date, part = found.groups()
            return _nearest_year([int(number) for number in date], before) + float(f"0.{part or 0}")
    except ValueError:
        return None
    return None


def _nearest_year(date: list[int], before: float | None) -> float:
    year = datetime.fromtimestamp(before, UTC).year if before is not None else datetime.now(UTC).year
    times = [datetime(near, *date, tzinfo=UTC).timestamp() for near in (year - 1, year, year + 1)]
    return times[1] if before is None else min(times, key=lambda time: abs(time - before))

"""Numbers, amounts and lists in words, for the sentences and pictures of the course.

The package `humanize` has such functions, but they write `4.0 MB`, `1.2 ks` and `1 millisecond and 200 microseconds`;
here two digits count, and seconds stay seconds, so that a sentence and the picture beside it have the same text.
"""

import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

PAGE_WRAPS = "JUPYTERLAB_WRAPS_WORDS"
"""The variable by which `make lab` tells its kernels that long lines are broken between words."""

LONG_TIMES = {"hour": 3600.0, "day": 86_400.0, "year": 365.25 * 86_400}
"""Seconds of each."""


def count(number: int, thing: str) -> str:
    """A number of things: "1 round", "3 epochs", "2 switches"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}{'es' if thing.endswith(('s', 'tch')) else 's'}"


def ordinal(number: int) -> str:
    """A number as a place in a row: "1st", "2nd", "3rd", "11th", "22nd"."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def printable(text: str) -> str:
    """The text with halves of characters spelled out, as names of old files have them: a notebook cannot show these."""
    return text.encode(errors="backslashreplace").decode()


def ranks(number: int) -> str:
    """A number of ranks: "1 rank", "3 ranks"."""
    return count(number, "rank")


def percent(share: float, digits: int | None = None) -> str:
    """Return a share as text: `25%`. Small ones get a digit more: `0.4%`."""
    if digits is None:
        digits = 1 if 0 < share < 0.0095 else 0
    return f"{100 * share:.{digits}f}%"


def number_text(value: float) -> str:
    """Two digits that count, and no `.0`: 1.2, 4, 35, 120."""
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")


def seconds_text(seconds: float) -> str:
    """A duration in words: `1.2 ms`, `35 µs`, `2.5 s`."""
    if not math.isfinite(seconds):
        return "no end"
    scale, unit = time_unit(abs(seconds))
    return f"{number_text(seconds * scale)} {unit}"


def days_text(seconds: float) -> str:
    """A long time in words: `9 hours`, `57 days`, from a year on `1.2 years`."""
    unit = "year" if seconds >= LONG_TIMES["year"] else "day" if seconds >= LONG_TIMES["day"] else "hour"
    text = number_text(seconds / LONG_TIMES[unit])
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def time_unit(span: float) -> tuple[float, str]:
    """The factor from seconds, and the name, of the unit in which a span reads best."""
    if span >= 0.9995:
        return 1.0, "s"
    return (1e3, "ms") if span >= 0.9995e-3 else (1e6, "µs")


def bytes_text(count: float) -> str:
    """An amount of data in words, in powers of ten: `8 B`, `1.5 KB`, `4 MB`."""
    units = ("B", "KB", "MB", "GB", "TB")
    power = 0
    while count >= 999.5 and power < len(units) - 1:
        count, power = count / 1000, power + 1
    return f"{number_text(count)} {units[power]}"


def wrapped(text: str, width: int = 92) -> str:
    """A text in lines that fit into a notebook's output, which would break a longer one in the middle of a word.

    Under `make lab` the page breaks lines itself, between words, and as its width has it.
    """
    if os.environ.get(PAGE_WRAPS):
        return text
    keep = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.fill(line, width, **keep) for line in text.splitlines())


def join(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def join_first(parts: Sequence[str], most: int) -> str:
    """As `join`; of more than `most` parts the first ones and the number of the others: `a, b and 3 more`."""
    more = len(parts) - most
    return f"{', '.join(parts[:most])} and {more} more" if more > 0 else join(parts)


def ranks_in_words(ranks: list[int]) -> str:
    """ "rank 2", "ranks 1 and 2", "ranks 0, 1 and 3"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def rank_ranges(ranks: Iterable[int], most: int | None = None) -> str:
    """ "rank 2", "ranks 0 and 1", "ranks 0, 2 to 5 and 7"; of more than `most` parts the first ones "and others"."""
    numbers = sorted(ranks)
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda item: item[1] - item[0])]
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    others = " and others" if most is not None and len(parts) > most else ""
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {join(parts[:most])}{others}"


def capital(clause: str) -> str:
    """A clause as it begins a sentence."""
    return f"{clause[0].upper()}{clause[1:]}"


def uncapital(sentence: str) -> str:
    """A sentence as it goes on in the middle of another one."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def as_sentences(*texts: str) -> str:
    """Texts as sentences, one after the other; those that are empty are left out."""
    return " ".join(f"{text}." for text in texts if text)

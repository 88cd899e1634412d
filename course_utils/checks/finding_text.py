"""The words of a finding. They are made here and nowhere else, and no code reads them back."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.compare import describe, is_plain, kind_of, with_article, with_kind
from course_utils.checks.finding import REPORTS, Finding, Key, Kind, Where
from course_utils.words import count

_RIGHT = "the result is right, but"
_WHOLE_SENTENCES = REPORTS | {Kind.SIGNATURE, Kind.BY_LUCK}


def text_of(finding: Finding, label: str = "") -> str:
    """Say what was found, as a sentence that begins with a small letter, and name the case behind it."""
    text = f"{_WORDS[finding.kind](finding).strip()}{finding.context}"
    behind = f" ({label})" if label else ""
    return f"{text}{behind}" if finding.kind in _WHOLE_SENTENCES else f"{text}{behind}."


def one_line(text: str) -> str:
    """A text without line breaks, cut after 200 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"


def where_text(where: Where) -> str:
    """The way into a result: " in y", " at index 2, index 0", " in weights[2]"."""
    text, named = "", False
    for step in where:
        if isinstance(step, Key):
            text += f" at key {describe(step.value)}"
        elif isinstance(step, str):
            named = named or not text
            text += f" in {step}"
        elif named:
            text += f"[{step}]"
        else:
            text += f"{',' if text else ' at'} index {step}"
    return text


def _raised(found: Finding) -> str:
    message = f": {one_line(found.got.message)}" if found.got.message else ""
    line = f", {found.got.line}" if found.got.line else ""
    return f"rank {found.rank} raised {found.got.type}{message}{line}"


def _nothing(found: Finding) -> str:
    verb = f"has nothing{where_text(found.where)}" if found.where else "returned nothing"
    return f"rank {found.rank} {verb}, expected {describe(found.expected)}"


def _type(found: Finding) -> str:
    given, wanted, where = kind_of(found.got), kind_of(found.expected), where_text(found.where)
    verb = f"rank {found.rank} {'has' if found.where else 'returned'}"
    if wanted == "None":
        return f"{verb} {describe(found.got)}{where}, expected nothing"
    if given == wanted:
        return f"{verb} a different kind of {given}{where}"
    if is_plain(given) and is_plain(wanted):
        return f"{verb} {with_kind(found.got)}{where}, expected {with_kind(found.expected)}"
    return f"{verb} {with_article(given)}{where}, expected {with_article(wanted)}"


def _shape(found: Finding) -> str:
    verb = f"has{where_text(found.where)}" if found.where else "holds"
    return f"rank {found.rank} {verb} shape {found.got}, expected {found.expected}"


def _dtype(found: Finding) -> str:
    verb = f"has{where_text(found.where)}" if found.where else "holds"
    return f"rank {found.rank} {verb} {found.got} numbers, expected {found.expected}"


def _value(found: Finding) -> str:
    where = where_text(found.where)
    if found.index is None:
        verb = "has" if found.where else "returned"
        got, expected = _both(found.got, found.expected)
        return f"rank {found.rank} {verb} {got}{where}, expected {expected}"
    index = found.index[0] if len(found.index) == 1 else found.index
    at = f" at index {index}" if found.index else ""
    of_what = f"{'' if isinstance(found.where[0], str) else ' of what it has'}{where}" if found.where else ""
    got, expected = _two_numbers(found.got, found.expected)
    return f"rank {found.rank} holds {got}{at}{of_what}, expected {expected}"


def _length(found: Finding) -> str:
    verb = "has" if found.where else "returned"
    entries = "1 entry" if found.got == 1 else f"{found.got} entries"
    return f"rank {found.rank} {verb} {entries}{where_text(found.where)}, expected {found.expected}"


def _argument(name: str | int | Key) -> str:
    return f"number {name + 1}" if isinstance(name, int) else f"`{name}`"


def _own(found: Finding) -> str:
    return found.words.format(**{"rank": found.rank, **found.values, **found.measured})


def _at_most(what: str) -> Callable[[Finding], str]:
    def text(found: Finding) -> str:
        enough = f"{found.expected} {'is' if found.expected == 1 else 'are'} enough"
        return f"{_RIGHT} it took {count(found.got, what)}; {enough}"

    return text


_WORDS: dict[Kind, Callable[[Finding], str]] = {
    Kind.SIGNATURE: lambda found: (
        f"is called with {count(found.expected, 'argument')}, but takes ({', '.join(found.got) or 'nothing'}). "
        "Put the first line back as it was."
    ),
    Kind.CANNOT_TRAVEL: lambda found: (
        f"uses something from the notebook that cannot be sent to the ranks: {one_line(found.words)}"
    ),
    Kind.RAISED: _raised,
    **dict.fromkeys(REPORTS, lambda found: found.words),
    Kind.UNFINISHED: lambda found: "right up to the line `raise NotImplementedError`, which was reached",
    Kind.NOTHING: _nothing,
    Kind.TYPE: _type,
    Kind.SHAPE: _shape,
    Kind.DTYPE: _dtype,
    Kind.VALUE: _value,
    Kind.LENGTH: _length,
    Kind.MISSING_ENTRY: lambda found: (
        f"rank {found.rank} has no entry {describe(found.expected)}{where_text(found.where)}"
    ),
    Kind.EXTRA_ENTRY: lambda found: (
        f"rank {found.rank} has an entry {describe(found.got)}{where_text(found.where)} too many"
    ),
    Kind.ARGUMENT_CHANGED: lambda found: (
        f"rank {found.rank} changed the argument {_argument(found.where[0])}, which the caller still needs unchanged"
    ),
    Kind.ROUNDS: _at_most("round"),
    Kind.MESSAGES: _at_most("message"),
    Kind.BYTES: lambda found: (
        f"{_RIGHT} rank {found.rank} sent {found.got:,} bytes; {math.ceil(found.expected):,} are enough"
    ),
    Kind.COLLECTIVES: lambda found: (
        f"rank {found.rank} made {count(found.got, 'collective call')}, expected {found.expected}"
    ),
    Kind.UNCOUNTED: lambda found: f"rank {found.rank} uses {found.words}, which is not counted here",
    Kind.BYPASSED: lambda found: (
        f"{_RIGHT} rank {found.rank} used {found.words}. What a rank sends and receives is counted by `comm`: use its "
        "methods, and leave what they record as it is"
    ),
    Kind.MISCOUNTED: lambda found: (
        f"{_RIGHT} rank {found.rank} recorded a message of {found.got:,} bytes from rank {found.values['sender']}, "
        f"and rank {found.values['sender']} recorded no such message"
    ),
    Kind.NEVER_WAITED_FOR: lambda found: f"{_RIGHT} rank {found.rank} never waited for {found.words}",
    Kind.BY_LUCK: lambda found: f"the result is right, but only by luck. {found.words}",
    Kind.OWN: _own,
}


def _both(got: Any, expected: Any) -> tuple[str, str]:
    if kind_of(expected) == "float":
        with contextlib.suppress(OverflowError):
            return _two_numbers(np.float64(got), np.float64(expected))
    return describe(got), describe(expected)


def _two_numbers(got: Any, expected: Any) -> tuple[str, str]:
    """Both numbers with as few digits as still tell them apart."""
    if got.dtype.kind not in "fc":
        return str(got), str(expected)
    for digits in (4, 6, 9):
        if _number(got, digits) != _number(expected, digits):
            return _number(got, digits), _number(expected, digits)
    return _number(got, 17), _number(expected, 17)


def _number(value: Any, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return text if set(text) & set(".enij") else f"{text}.0"

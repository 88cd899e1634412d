"""The words of a finding. They are made here and nowhere else, and no code reads them back."""

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.compare import describe, is_plain, kind_of, with_article, with_kind
from course_utils.checks.finding import REPORTS, Finding, Key, Kind
from course_utils.words import count, ordinal

_RIGHT = "the result is right, but"
_HALF_LARGEST = {"float16": "65,504", "bfloat16": "3.4e38"}
"""The largest numbers of types of which programs leave the range."""
_FLOAT32_ERROR = 1e-9, 1e-6
"""How far a number of double precision is off, relatively, that was computed in single precision."""


def text_of(finding: Finding, label: str = "") -> str:
    """Say what was found, as a sentence that begins with a small letter; name the case; say what may explain it."""
    clause = f"{_WORDS[finding.kind](finding).strip()}{finding.context}".removesuffix(".")
    sentences = [f"{clause}{f' ({label})' if label else ''}.", _remark(finding), finding.afterwards]
    return " ".join(filter(None, sentences))


def one_line(text: str) -> str:
    """A text without line breaks, cut after 200 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"


# --- who, and where -------------------------------------------------------------------------------------------------


def _who(found: Finding) -> str:
    """The subject of a sentence: "rank 2", or "your function" if there are no ranks."""
    return "your function" if found.alone or found.rank is None else f"rank {found.rank}"


def _thing(found: Finding) -> str:
    """What a rank holds or gave back, as a noun: "rank 2's `vector`", "the gradient of x"; "" for all of a result."""
    where = list(found.where)
    if found.argument:
        name = f"{found.argument}{''.join(map(_index, where))}"
        name = f"`{name}`" if found.argument.isidentifier() else name
        return name if found.alone else f"rank {found.rank}'s {name}"
    if where and isinstance(where[0], int) and where[0] < len(found.calls):
        where.pop(0)
    if not where:
        return ""
    first = where.pop(0)
    if isinstance(first, str):
        text = first
    elif isinstance(first, int) and first < len(found.parts):
        text = found.parts[first]
    else:
        indices = [first, *itertools.takewhile(lambda step: not isinstance(step, str), where)]
        where = where[len(indices) - 1 :]
        text = f"`result{''.join(map(_index, indices))}`"
    for step in where:
        text = f"{step} of {text}" if isinstance(step, str) else f"{text}{_index(step)}"
    return text


def _call(found: Finding) -> str:
    """Which of several calls it was: " for staleness 0"."""
    first = found.where[0] if found.where and not found.argument else None
    return f" {found.calls[first]}" if isinstance(first, int) and first < len(found.calls) else ""


def _index(step: Any) -> str:
    return f"[{describe(step.value if isinstance(step, Key) else step)}]"


def _sentence(found: Finding, predicate: str, returned: str, wanted: str) -> str:
    """A sentence on a value.

    Args:
        predicate: of a part of a result, or of an argument: "holds 3 at index 0".
        returned: the same of a whole result: "3 at index 0".
        wanted: what was expected in its place; "" to say nothing of it.
    """
    behind = f", expected {wanted}" if wanted else ""
    thing = _thing(found)
    if thing:
        on = "" if found.alone or found.argument or found.rank is None else f"on rank {found.rank}, "
        return f"{on}{thing} {predicate}{_call(found)}{behind}"
    return f"{_who(found)} returned {returned}{_call(found)}{behind}"


# --- one function for each kind -------------------------------------------------------------------------------------


def _signature(found: Finding) -> str:
    takes = ", ".join(found.got) or "nothing"
    return (
        f"your function gets {count(found.expected, 'argument')}, but takes ({takes}). Restore its first line as it was"
    )


def _raised(found: Finding) -> str:
    message = f": {one_line(found.got.message)}" if found.got.message else ""
    line = f", {found.got.line}" if found.got.line else ""
    return f"{_who(found)} raised {found.got.type}{message.removesuffix('.')}{line}"


def _nothing(found: Finding) -> str:
    return _sentence(found, "is None", "nothing", describe(found.expected))


def _type(found: Finding) -> str:
    given, wanted = kind_of(found.got), kind_of(found.expected)
    if wanted == "None":
        return _sentence(found, f"is {describe(found.got)}", describe(found.got), "nothing")
    if given == wanted:
        return _sentence(found, f"is a different kind of {given}", f"a different kind of {given}", "")
    if is_plain(given) and is_plain(wanted):
        return _sentence(found, f"is {with_kind(found.got)}", with_kind(found.got), with_kind(found.expected))
    return _sentence(found, f"is {with_article(given)}", with_article(given), with_article(wanted))


def _shape(found: Finding) -> str:
    return _sentence(found, f"has the shape {found.got}", f"numbers of shape {found.got}", f"shape {found.expected}")


def _dtype(found: Finding) -> str:
    return _sentence(found, f"holds {found.got} numbers", f"{found.got} numbers", f"{found.expected}")


def _value(found: Finding) -> str:
    if found.index is None:
        got, expected = _both(found.got, found.expected)
        return _sentence(found, f"is {got}", got, expected)
    got, expected = _two_numbers(found.got, found.expected)
    if not found.index:
        return _sentence(found, f"is {got}", got, expected)
    index = found.index[0] if len(found.index) == 1 else found.index
    return _sentence(found, f"holds {got} at index {index}", f"{got} at index {index}", expected)


def _length(found: Finding) -> str:
    entries = "1 entry" if found.got == 1 else f"{found.got} entries"
    return _sentence(found, f"has {entries}", entries, f"{found.expected}")


def _missing(found: Finding) -> str:
    return _sentence(found, f"has no entry {describe(found.expected)}", f"no entry {describe(found.expected)}", "")


def _extra(found: Finding) -> str:
    entry = f"an entry {describe(found.got)}, which does not belong there"
    return _sentence(found, f"has {entry}", entry, "")


def _no_error(found: Finding) -> str:
    return f"{_who(found)} returned {found.got.returned}; {_promise(found)}"


def _other_error(found: Finding) -> str:
    error = found.got
    message = f": {one_line(error.message)}" if error.message else ""
    line = f", {error.line}" if error.line else ""
    return f"{_who(found)} raised {error.own_name}{message.removesuffix('.')}{line}; {_promise(found)}"


def _no_message(found: Finding) -> str:
    line = f", {found.got.line}" if found.got.line else ""
    return f"{_who(found)} raised {found.got.own_name} without a message{line}"


def _promise(found: Finding) -> str:
    return f"for these arguments, the docstring promises {with_article(found.expected.error)}"


def _changed(found: Finding) -> str:
    name = found.argument or str(found.where[0])
    what = f"its argument `{name}`" if name.isidentifier() else name
    return f"{_who(found)} changed {what}, which the caller still needs unchanged"


def _own(found: Finding) -> str:
    return found.words.format(**{"rank": found.rank, "who": _who(found), **found.values, **found.measured})


def _at_most(what: str) -> Callable[[Finding], str]:
    def text(found: Finding) -> str:
        enough = f"{found.expected} {'is' if found.expected == 1 else 'are'} enough"
        return f"{_RIGHT} it took {count(found.got, what)}; {enough}"

    return text


_WORDS: dict[Kind, Callable[[Finding], str]] = {
    Kind.SIGNATURE: _signature,
    Kind.CANNOT_TRAVEL: lambda found: f"your function uses {one_line(found.words)}",
    Kind.RAISED: _raised,
    **dict.fromkeys(REPORTS, lambda found: found.words),
    Kind.UNFINISHED: lambda found: (
        "some cases are right, but in this one your function reaches the line `raise NotImplementedError`"
    ),
    Kind.NOTHING: _nothing,
    Kind.TYPE: _type,
    Kind.SHAPE: _shape,
    Kind.DTYPE: _dtype,
    Kind.VALUE: _value,
    Kind.LENGTH: _length,
    Kind.MISSING_ENTRY: _missing,
    Kind.EXTRA_ENTRY: _extra,
    Kind.NO_ERROR: _no_error,
    Kind.OTHER_ERROR: _other_error,
    Kind.NO_MESSAGE: _no_message,
    Kind.ARGUMENT_CHANGED: _changed,
    Kind.ROUNDS: _at_most("round"),
    Kind.MESSAGES: _at_most("message"),
    Kind.BYTES: lambda found: (
        f"{_RIGHT} rank {found.rank} sent {found.got:,} bytes; {math.ceil(found.expected):,} are enough"
    ),
    Kind.COLLECTIVES: lambda found: (
        f"{_RIGHT} rank {found.rank} made {count(found.got, 'collective call')}, expected {found.expected}"
    ),
    Kind.UNCOUNTED: lambda found: (
        f"{_RIGHT} rank {found.rank} uses {found.words}, and what such a call sends cannot be counted here"
    ),
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


# --- what may explain it --------------------------------------------------------------------------------------------


def _remark(found: Finding) -> str:
    """A sentence on numbers that differ because of their type; "" where that is not likely."""
    if found.kind != Kind.VALUE or kind_of(found.expected) != "float" or kind_of(found.got) != "float":
        return ""
    got, expected = float(found.got), float(found.expected)
    if found.dtype in _HALF_LARGEST and math.isfinite(expected) and not math.isfinite(got):
        return f"The largest number that fits into {found.dtype} is {_HALF_LARGEST[found.dtype]}."
    error = abs(got - expected) / abs(expected) if expected and math.isfinite(got) else 0.0
    if found.dtype in ("", "float64") and _FLOAT32_ERROR[0] < error < _FLOAT32_ERROR[1]:
        digit = ordinal(math.floor(-math.log10(error)) + 1)
        return f"The two numbers differ from the {digit} digit on. Was this one computed in float32?"
    return ""


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

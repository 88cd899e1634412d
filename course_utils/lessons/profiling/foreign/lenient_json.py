"""Reads the events of a Chrome trace one after the other, from text that need not be quite JSON, nor whole.

Kineto, which writes torch.profiler's files, has at times written numbers that are none (`nan`), backslashes as they are
in the names of Windows' folders, and characters that JSON forbids; and a job that is killed leaves half a file. The
text of a large file never lies in memory as a whole: an event is given on as soon as it is read.

The package `ijson` reads JSON bit by bit as well, but it stops at the first thing that JSON forbids.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

EVENTS = "traceEvents"
"""The key of a trace's list of events."""
_MOST = 1 << 25
"""Characters: whatever has not ended after so many is not an event, and no part of a trace's head either."""
_MOST_MENDED = 1 << 16
"""Characters of an event that is mended, where brackets have to be counted."""
_AHEAD = 16
"""Characters: an error so far before the end of the text is one, and does not come from a text that goes on."""
_BETWEEN = re.compile(r"[\s,\x00]*")
_FIRST_KEY = re.compile(r"\{\s*\"\w+\"\s*:")
_FIRST_OF_EVENTS = re.compile(rf"\"{EVENTS}\"\s*:\s*(?=\[)")
_STRING_OR_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[{}]", re.DOTALL)
_STRING_OR_NO_VALUE = re.compile(
    r"(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<nan>-?nan(?:\(\w*\))?)|(?P<infinity>-?inf)(?:inity)?\b"
    r"|:(?P<nothing>\s*)(?=[,}])|,(?P<last>\s*)(?=[}\]])",
    re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})|\\")
_SCAN = json.JSONDecoder(strict=False).scan_once


class NotReadable(Exception):
    """At this point of the text there is no value.

    Attributes:
        at_end: it may have begun, and the text ended in it.
        is_long: it may have begun, and is longer than any event.
    """

    def __init__(self, at_end: bool = False, is_long: bool = False) -> None:
        super().__init__(at_end, is_long)
        self.at_end, self.is_long = at_end, is_long


class TraceText:
    """The text of a trace, of which only a part is in memory.

    Attributes:
        head: what the trace's object has besides its events; of values that are long, and of no use here, None.
        has_events: whether a list of events was found.
        lost: how many pieces between the events could not be read.
        is_cut: whether the text ended before the trace did.
        is_json: whether it looks like JSON, of which no more than single events are wrong.
    """

    def __init__(self, pieces: Iterator[str], take: Callable[[Any], None]) -> None:
        """Prepare to read.

        Args:
            pieces: of the text, one after the other.
            take: is called with each event.
        """
        self._pieces, self._take = pieces, take
        self._text, self._at, self._ended = "", 0, False
        self._event_begin = _FIRST_KEY
        self.head: dict[str, Any] = {}
        self.has_events, self.lost, self.is_cut, self.is_json = False, 0, False, True

    def read(self) -> None:
        """Read all of it."""
        match self._next():
            case "[":
                self._read_events(needs_end=False)  # so Chrome's own lists are
            case "{":
                self._read_object()

    def _read_object(self) -> None:
        self._at += 1
        while (mark := self._next()) not in ("}", ""):
            try:
                if mark != '"':
                    raise NotReadable
                key = self._value()
                if self._next() == ":":
                    self._at += 1
                if self._next() == "[" and key == EVENTS:
                    self._read_events()
                else:
                    self.head[key] = None  # known by its name, even if its value is too long
                    self.head[key] = self._value()
            except NotReadable as error:
                self.is_json &= error.at_end or error.is_long
                if self.has_events or not self._find_events():
                    self.is_cut |= error.at_end
                    return
        self.is_cut |= mark == ""

    def _find_events(self) -> bool:
        """Go to the next list of events, over whatever is before it."""
        while not (found := _FIRST_OF_EVENTS.search(self._text, self._at)):
            self._at = max(self._at, len(self._text) - 64)  # in which the beginning of the key may be
            if not self._fill():
                return False
        self._at = found.end()
        self._read_events()
        return True

    def _read_events(self, needs_end: bool = True) -> None:
        """Give on each event of a list."""
        self.has_events = True
        self._at += 1
        take, skip = self._take, _BETWEEN.match
        if self._next() == "{" and (first := _FIRST_KEY.match(self._text, self._at)):
            self._event_begin = re.compile(re.sub(r"\s+", r"\\s*", re.escape(re.sub(r"\s+", " ", first[0]))))
        while True:
            text, at = self._text, self._at
            while True:
                try:
                    event, at = _SCAN(text, skip(text, at).end())  # type: ignore[union-attr]
                except (StopIteration, ValueError, RecursionError):
                    break
                take(event)
                self._at = at
            match self._next():
                case "":
                    self.is_cut |= needs_end
                    return
                case "]":
                    self._at += 1
                    return
                case mark:
                    self._read_hard_event(mark)

    def _read_hard_event(self, mark: str) -> None:
        """Read what is next in a list of events and perhaps not an event as it should be."""
        try:
            if mark != "{":
                raise NotReadable
            event = self._value()
        except NotReadable:
            self.is_json &= mark == "{"
            self._mend()
        else:
            self._take(event)

    def _mend(self) -> None:
        """Give on an event that is not quite JSON if it can be understood, and go to the next one."""
        while not self._ended and len(self._text) - self._at < _MOST_MENDED:
            self._fill()
        if end := _end_of_object(self._text, self._at):
            try:
                event = json.loads(mended(self._text[self._at : end]), strict=False)
            except (ValueError, RecursionError):
                pass
            else:
                self._at = end
                self._take(event)
                return
        self._at += 1
        while not (found := self._event_begin.search(self._text, self._at)):
            if self._ended:
                self._end_in_an_event(bool(end))
                return
            self._at = max(self._at, len(self._text) - 64)
            self._fill()
        self.lost += 1
        self._at = found.start()

    def _end_in_an_event(self, has_end: bool) -> None:
        """Go to the end of the text, or of the list, as no event follows the one that could not be read."""
        bracket = self._text.find("]", self._at) if has_end else -1
        self.lost += has_end
        self.is_cut |= not has_end
        self._at = len(self._text) if bracket < 0 else bracket

    def _value(self) -> Any:
        """The value that is next.

        Raises:
            NotReadable: it is none, or the text ends in it.
        """
        while True:
            tried = len(self._text) - self._at
            try:
                value, end = _SCAN(self._text, self._at)
                if end < len(self._text) or self._ended:  # a number may go on
                    self._at = end
                    return value
            except (StopIteration, ValueError, RecursionError) as error:
                is_wrong, is_long = _is_wrong(error, self._text), len(self._text) - self._at > _MOST
                if is_wrong or is_long or self._ended:
                    raise NotReadable(at_end=not is_wrong and not is_long, is_long=is_long and not is_wrong) from None
            self._fill()
            while len(self._text) - self._at < 2 * tried and self._fill():
                pass  # twice as much: what is read again and again takes no more than twice the time

    def _next(self) -> str:
        """The next character that is neither white nor a comma; "" at the end of the text."""
        while True:
            self._at = _BETWEEN.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _fill(self) -> bool:
        """Have more text, and forget what was read; False if there is no more."""
        piece = next(self._pieces, "") if not self._ended else ""
        self._ended = not piece
        self._text, self._at = self._text[self._at :] + piece, 0
        return not self._ended


def mended(event: str) -> str:
    """An event's text as JSON: `nan` and `inf` as Python's json has them, backslashes doubled, commas that end a list
    left out."""
    return _STRING_OR_NO_VALUE.sub(_mended_part, event)


def _mended_part(found: re.Match[str]) -> str:
    if string := found["string"]:
        return _ESCAPE.sub(lambda escape: escape[0] if len(escape[0]) > 1 else r"\\", string)
    if found["nan"]:
        return "NaN"
    if infinity := found["infinity"]:
        return "-Infinity" if infinity.startswith("-") else "Infinity"
    return ": null" if found["nothing"] is not None else ""


def _is_wrong(error: Exception, text: str) -> bool:
    """Whether more text would not help: the error is not at the text's end."""
    match error:
        case StopIteration(value=int(position)):
            return position + _AHEAD < len(text)
        case json.JSONDecodeError():
            return error.pos + _AHEAD < len(text) and not error.msg.startswith("Unterminated")
    return True


def _end_of_object(text: str, begin: int) -> int:
    """Where the object that begins here ends, by its brackets alone; 0 if it doesn't."""
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, begin, begin + _MOST_MENDED):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return 0

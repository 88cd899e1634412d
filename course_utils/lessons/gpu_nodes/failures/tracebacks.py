"""Find the exceptions in a log, each with its message and the line of the program it came from.

Python prints them with the calls that led to them, and C++ with no more than their type and their text.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from course_utils.lessons.gpu_nodes.failures.log_line import Line

_MARKS = re.compile(
    r"^\s*(?:\d+: |(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\[\d+(?:,\d+)?\](?:<std\w+>)?: ?|\[default\d+\]: ?|stderr: "
    r"|\(\w+ (?:pid=\d+|rank=\d+)[^)]*\) ?|\[?[rR]ank[ _=]?\d+\]?: ?"
    r"|\[[EF]\d{4} [^\]]*\] (?=\w+(?:Error|Exception)\b)"
    r"|(?:ERROR|CRITICAL) \d\d-\d\d [\d:]+ \[[^\]]*\] ?"
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ][\d:]+(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? ?(?:std(?:out|err) [FP] )?"
    r"(?=\[rank|\[default|Traceback |  |(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$))"
    r"|(?!\w*(?:Error|Exception|Interrupt):)[\w.-]*\d[\w.-]*: (?=Traceback |  |\w[\w.]*(?:Error|Exception):))"
)
"""What launchers, containers and programs put before a line, and what C++ puts before an error."""
_MARK_IN_A_LINE = re.compile(r"\S(\[rank\d+\]: ?)")
_BEGIN = re.compile(r"(?:^|[\s:\"])Traceback \(most recent call last\):")
_FILE = re.compile(r'^(\s*)File "([^"]+)", line (\d+)(?:, in (.*))?')
_RICH_FILE = re.compile(r"^│ (\S+\.py):(\d+) in (\S+)")
"""A call in a traceback of the package `rich`, which many training programs use."""
_RAISED = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)+\w+|[A-Z]\w*[a-z]\w*)(?:\(\w+\))?(?::(?=\s|$)|$)")
_EXCEPTION = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))(?:\(\w+\))?(?::(?=\s|$)|$)")
_CHAINED = re.compile(r"^\s*(?:During handling of the above exception|The above exception was the direct cause)")
_DURING = re.compile(r"^\s*During handling of the above exception")
_CPP = re.compile(
    r"^\s*(?:terminate called after throwing an instance of '([^']+)'"
    r"|libc\+\+abi: terminating (?:due to|with) uncaught exception of type ([\w:<>]+))"
)
_WHAT = re.compile(r"^\s*what\(\):")
_BARE = re.compile(r"\w(?:Error|Exception|Interrupt):?\s*$")
_LAST_ERROR = re.compile(r"\bLast error:\s*$")
_OF_NCCL = re.compile(r"nccl\w+Error: |Last error:\s*$")
_ORIGINAL = re.compile(r"^\s*Original Traceback")
_NESTED = re.compile(r"^\s*-- Process (\d+) terminated with the following error")
_OF_RAY = re.compile(r"ray::\S+\(\)")
_ENDS_A_MESSAGE = re.compile(
    r"^(?:srun|slurmstepd\S*|sbatch|mpirun|torchrun): |^[WEIF]\d{4} |^\[[WEIF]\d* |^\d{4}-\d\d-\d\d[ T]"
    r"|^\[?\d{4}/\d\d/\d\d|^\s*(?:-{5,}|={5,})\s*$|^\[[\w.-]+:\d+\] |^Aborted\b"
)
_LIBRARY = re.compile(
    r"site-packages/|dist-packages/|/lib(?:64)?/python[\d.]+/|^<frozen |^<string>|^<__array|\bimportlib\b"
    r"|python[\d.]*\.zip/|^(?!/).*\.(?:pyx|pxi|pxd|cpp|cc|c)$"
)
"""Files of Python itself and of installed packages, which name those of their compiled parts as on the machine that
built them."""
_OF_SLURM = re.compile(r"(?:srun|slurmstepd\S*): (?:error: )?")
_DOUBLED = re.compile(r"(\w+?(?:Error|Exception|Interrupt))\1+")
"""The name of an exception that several ranks wrote at the same moment, without taking turns."""
_BEGINNINGS = (
    "Traceback",
    'File "',
    "Error",
    "Exception",
    "Interrupt",
    "│",
    "terminate called",
    "libc++abi",
    "what():",
)
"""A line without any of these does not begin an exception."""
_LONGEST_MESSAGE = 30  # lines
_LOOKUPS = {
    "KeyError", "IndexError", "LookupError", "AttributeError", "NameError", "StopIteration", "ImportError",
    "ModuleNotFoundError", "FileNotFoundError",
}  # fmt: skip
"""What programs catch on purpose, to try something else."""
_WAITS = {"TimeoutError", "CancelledError", "ValueError"}
"""What packages raise without a text, and catch to say in their own words what happened."""
_NEAR = 3
"""From the `try` to a look-up that is expected to fail, there are at most so many calls."""


@dataclass(frozen=True)
class CodePosition:
    """Where in a program an exception came from: the file, the number of the line, and the function."""

    file: str
    number: int
    function: str = ""

    @property
    def is_of_a_package(self) -> bool:
        """Whether it is in Python itself or in an installed package, and not in the reader's own program."""
        return _LIBRARY.search(self.file) is not None


@dataclass(frozen=True)
class RaisedError:
    """An exception, as Python prints it.

    Attributes:
        type: its name without the module, such as "KeyError".
        line: the line that names it.
        message: further lines of its message.
        position: the last call in the reader's own program, or in a package if there is no other.
        rank: who raised it, if that is known.
        is_cpp: whether it is one of C++.
        is_caught: whether a program expected it and went on differently, so that what it raised then counts.
    """

    type: str
    line: Line
    message: tuple[Line, ...] = ()
    position: CodePosition | None = None
    rank: int | None = None
    is_cpp: bool = False
    is_caught: bool = False

    @property
    def reason(self) -> Line:
        """The line that tells why: the one after "Last error:" if NCCL adds it, and otherwise the exception itself."""
        following = zip(self.message, self.message[1:])
        return next((line for heading, line in following if _LAST_ERROR.search(heading.text)), self.line)


@dataclass(frozen=True)
class Tracebacks:
    """What a log shows of exceptions.

    Attributes:
        chains: exceptions, each with those that followed from it, the first one first.
        inside: the indices of the lines that are parts of them.
    """

    chains: tuple[tuple[RaisedError, ...], ...]
    inside: frozenset[int]


@dataclass
class _ReadTraceback:
    """What is known of one writer while its lines are read."""

    chain: list[RaisedError] = field(default_factory=list)
    is_open: bool = False
    is_chained: bool = False
    is_during: bool = False
    """Whether the next exception is raised while the last one is handled, and not because of it."""
    is_nested: bool = False
    is_message_over: bool = False
    indent: int | None = None
    own: CodePosition | None = None
    last: CodePosition | None = None
    calls: int = 0
    calls_before: int = 0
    """In the traceback of the last exception of the chain."""
    raises: bool = False
    """Whether the last call shown is a `raise`."""
    rank: int | None = None


def unmarked(text: str) -> str:
    """The text of a line without the marks by which launchers tell ranks apart."""
    if found := _MARK_IN_A_LINE.search(text):
        text = text[found.start(1) :]
    while found := _MARKS.match(text):
        text = text[found.end() :]
    return text


def tracebacks_of(lines: Sequence[Line]) -> Tracebacks:
    """Find the exceptions in the lines of a log, also where lines of several ranks are mixed."""
    writers: dict[tuple[str, int | None], _ReadTraceback] = defaultdict(_ReadTraceback)
    chains: list[list[RaisedError]] = []
    inside: set[int] = set()
    throwers: dict[str, _ReadTraceback] = {}
    for index, line in enumerate(lines):
        writer = writers[line.file, line.rank]
        if not (writer.is_open or writer.chain or any(word in line.text for word in _BEGINNINGS)):
            continue
        text = unmarked(line.text)
        if _is_torn(text, lines[index + 1 : index + 1 + _NEAR]):
            continue
        if _WHAT.match(text):
            writer = throwers.pop(line.file, writer)  # the text may name a rank, and the line before it none
        elif _CPP.match(text):
            throwers[line.file] = writer
        if _read(writer, text, line, chains):
            inside.add(index)
    return Tracebacks(tuple(tuple(chain) for chain in chains), frozenset(inside))


def _is_torn(text: str, following: Sequence[Line]) -> bool:
    """Whether this is only the name of an exception, and its text comes after the beginning of another process's."""
    if not (following and _BARE.search(text) and _BEGIN.match(following[0].text)):
        return False
    return any(line.text.startswith(":") for line in following[1:])


def _read(writer: _ReadTraceback, text: str, line: Line, chains: list[list[RaisedError]]) -> bool:
    """Read a line of a writer; whether it is a part of an exception."""
    if _BEGIN.search(text):
        writer.is_nested = writer.is_nested or (bool(writer.chain) and _ORIGINAL.match(text) is not None)
        _begin(writer)
        return True
    if found := _CPP.match(text):
        writer.chain, writer.is_chained, writer.is_nested = [], False, False
        writer.own = writer.last = None
        _close(writer, found[1] or found[2], line, chains)
        writer.chain[-1] = replace(writer.chain[-1], is_cpp=True)
        return True
    position = _FILE.match(text)
    if found := _RICH_FILE.match(text):
        _note_call(writer, CodePosition(found[1], int(found[2]), found[3]))
        return True
    if writer.is_open or position:
        return _read_call(writer, text, line, position, chains)
    if found := _EXCEPTION.match(text):
        _close(writer, found[1], line, chains)
        return True
    if writer.chain:
        return _read_message(writer, text, line)
    return False


def _begin(writer: _ReadTraceback) -> None:
    if not (writer.is_chained or writer.is_nested):
        writer.chain = []
    writer.is_open, writer.indent, writer.own, writer.last = True, None, None, None
    writer.calls, writer.raises = 0, False


def _read_call(
    writer: _ReadTraceback, text: str, line: Line, position: re.Match[str] | None, chains: list[list[RaisedError]]
) -> bool:
    if position:
        if not writer.is_open:  # a SyntaxError has no line "Traceback"
            _begin(writer)
            writer.is_open = True
        _note_call(writer, CodePosition(position[2], int(position[3]), position[4] or ""))
        writer.indent = len(position[1]) if writer.indent is None else writer.indent
        return True
    found = _RAISED.match(text)
    indent = len(text) - len(text.lstrip())
    if found and indent < max(writer.indent or 0, 1) and (_EXCEPTION.match(text) or writer.indent is not None):
        _close(writer, found[1], line, chains)
        return True
    if text.strip() and indent < max(writer.indent or 0, 1) and not text.lstrip().startswith(("[", "|", "+")):
        writer.is_open = False
        return False
    writer.raises = writer.raises or text.lstrip().startswith("raise ")
    return True


def _note_call(writer: _ReadTraceback, position: CodePosition) -> None:
    writer.last = position
    writer.calls += 1
    writer.raises = False
    if not position.is_of_a_package:
        writer.own = position


def _close(writer: _ReadTraceback, name: str, line: Line, chains: list[list[RaisedError]]) -> None:
    """Note the exception whose last line this is."""
    is_new = not writer.is_open or not (writer.chain and (writer.is_chained or writer.is_nested))
    rank = line.rank if line.rank is not None else writer.rank
    raised = RaisedError(_type_of(name), line, (), writer.own or writer.last, rank)
    if is_new:
        writer.chain = [raised]
        chains.append(writer.chain)
    elif writer.is_nested:
        writer.chain.insert(0, raised)
    else:
        _append(writer, raised)
    writer.calls_before = writer.calls
    writer.is_open = writer.is_chained = writer.is_during = writer.is_message_over = False
    writer.is_nested = _OF_RAY.search(line.text) is not None
    writer.indent = writer.own = writer.last = writer.rank = None


def _append(writer: _ReadTraceback, raised: RaisedError) -> None:
    """Add an exception to those that it followed from, which it may also show to have been harmless.

    The traceback of an exception that was caught begins where it was caught, so only the later one shows which line of
    the reader's program led there.
    """
    if not _is_bare(raised):
        writer.chain[:] = [
            replace(earlier, is_caught=earlier.is_caught or _is_a_wait(earlier)) for earlier in writer.chain
        ]
    before = writer.chain[-1]
    if writer.is_during and before.type in _LOOKUPS and before.position and raised.position:
        in_package = before.position.is_of_a_package and writer.calls_before <= _NEAR
        where, where_then = ((at.file, at.function) for at in (before.position, raised.position))
        writer.chain[-1] = before = replace(before, is_caught=in_package or (writer.raises and where == where_then))
    if writer.own and before.position and before.position.is_of_a_package:
        writer.chain[-1] = replace(before, position=writer.own)
    writer.chain.append(raised)


def _is_bare(raised: RaisedError) -> bool:
    """Whether an exception has no text."""
    return _BARE.search(raised.line.text) is not None


def _is_a_wait(raised: RaisedError) -> bool:
    """Whether an exception is how a package waits or tries, so that a later one with a text tells more."""
    in_package = raised.position is not None and raised.position.is_of_a_package
    return raised.type in _WAITS and in_package and _is_bare(raised)


def _type_of(name: str) -> str:
    short = name.rpartition(".")[2]
    return found[1] if (found := _DOUBLED.fullmatch(short)) else short


def _read_message(writer: _ReadTraceback, text: str, line: Line) -> bool:
    """Read a line that comes after an exception of this writer; whether it is certainly a part of it.

    What looks like a message may be somebody else's line, as not every log marks ranks. Rules may look at it again.
    """
    if _CHAINED.match(text):
        writer.is_chained, writer.is_during = True, _DURING.match(text) is not None
        return True
    if _WHAT.match(text) and writer.chain[-1].is_cpp:
        rank = line.rank if line.rank is not None else writer.chain[-1].rank
        writer.chain[-1] = replace(writer.chain[-1], line=line, rank=rank)
        return True
    if found := _NESTED.search(text):
        writer.is_nested = True
        writer.rank = int(found[1]) if found[1] else writer.rank
        return True
    if not text.strip():
        writer.is_message_over = writer.is_message_over or bool(writer.chain[-1].message) or line.rank is None
        return True
    last = writer.chain[-1]
    if writer.is_chained or writer.is_nested:
        return False
    if (
        writer.is_message_over
        or len(last.message) >= _LONGEST_MESSAGE
        or _ENDS_A_MESSAGE.match(text)
        or _OF_SLURM.search(text)
    ):
        writer.chain = []
        return False
    writer.chain[-1] = replace(last, message=(*last.message, line))
    is_reason = bool(last.message) and _LAST_ERROR.search(last.message[-1].text) is not None
    return is_reason or _OF_NCCL.match(text) is not None


def words_of(chain: Iterable[RaisedError]) -> Iterator[str]:
    """The lines of all exceptions of a chain."""
    for raised in chain:
        yield raised.line.text
        yield from (line.text for line in raised.message)

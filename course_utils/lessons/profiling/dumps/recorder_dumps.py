"""Read what torch's Flight Recorder has written, in anybody's run: the collectives of each rank, as values.

After a collective has timed out, torch writes a file for each rank, named by `TORCH_FR_DUMP_TEMP_FILE` and the rank's
number: a pickle, or JSON if a program asked for it. A pickle can run any code while it is read, and
`torch.distributed.flight_recorder` reads it with full powers. These files come from strangers, so here nothing is
built but numbers, texts, lists and dictionaries.

Source: PyTorch, `torch/csrc/distributed/c10d/FlightRecorder.hpp`, versions 2.0 to 2.10 of its format.
"""

import io
import json
import os
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.words import printable

LARGEST = 64_000_000
"""Files with more bytes are not read: 2,000 collectives with stacks of 20 lines take about 1 MB."""
MOST_FILES = 20_000
"""A folder with more files is read in part."""
MOST_DIMENSIONS = 64
"""Of a tensor, in torch."""
_RANK = re.compile(r"(?<!\d)(\d{1,6})(?:\.(?:json|pickle|pkl|bin|dump|txt))?$")
_DUMP_NAME = re.compile(r"trace_rank|flight|fr_trace|fr_dump|^_?dump_?\d", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,18}")
_MESSAGE = re.compile(r"(?P<operation>send|recv) (?P<first>\d{1,9})(?:->|<-)(?P<second>\d{1,9})")
_TORCH = re.compile(r"(?:^|/)torch/(?:_|autograd|cuda|distributed|func|jit|nn|optim|ops|testing|utils)")
_COURSE = re.compile(r"/course_utils/(?:trace|ranks)/")
_CELL = re.compile(r"/ipykernel_\d+/|^<ipython-input|^<cell")
_INSTALLED = re.compile(r"/(?:site-packages|dist-packages|lib/python[^/]*)/")
_TENSOR_TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8",
    "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool", "ComplexFloat": "complex64",
}  # fmt: skip
"""C++ names of the types of tensors, as dumps have them, and their names in Python."""
GLOO = "gloo"
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ProgramLine:
    """A line of the program, from which a collective was called."""

    file: str
    line: int
    function: str

    @property
    def is_in_notebook(self) -> bool:
        """Whether it is in a cell, for which IPython makes up the name of a file."""
        return bool(_CELL.search(self.file))


@dataclass(frozen=True)
class RecordedCall:
    """A collective, a send or a receive, as one rank has recorded it.

    Attributes:
        rank: whose dump it is in.
        record: its number among all calls of this rank, from 0.
        group, description: name of the process group, "0" for example, and what its maker called it.
        backend: "nccl", "gloo" and so on.
        operation: "all_reduce", or "send" and "recv" for messages.
        is_message: whether it is between two ranks.
        sequence: its number among the collectives of the group, or among the rank's messages in it. Coalesced calls
            share a number.
        sender, receiver: of a send or a receive, as ranks in the group; otherwise -1.
        inputs, outputs: shapes of the tensors.
        types: of the inputs, or of the outputs if there are none: "float32".
        state: "scheduled", "started" on the GPU, or "completed".
        is_retired: whether torch no longer watches it, because it is over or has timed out.
        created: seconds since 1970, by the clock of the rank's node.
        line: where the program called it, if the dump has stacks.
    """

    rank: int
    record: int
    group: str
    description: str
    backend: str
    operation: str
    is_message: bool
    sequence: int
    sender: int
    receiver: int
    inputs: Shapes
    outputs: Shapes
    types: tuple[str, ...]
    state: str
    is_retired: bool
    created: float
    line: ProgramLine | None

    @property
    def is_over(self) -> bool:
        """Whether it has ended. Over gloo every call stays "scheduled", and is retired even if it has failed."""
        return self.state == "completed" or (self.is_retired and self.backend == GLOO)


@dataclass(frozen=True)
class GroupProgress:
    """How far a rank has got in a group by torch's own count, which is also there for calls that aren't in the dump.

    Attributes:
        called: number of the last collective that the rank has called.
        ended: number of the last one that has ended.
    """

    called: int
    ended: int


@dataclass(frozen=True)
class RankDump:
    """The dump of one rank.

    Attributes:
        calls: in the order in which they were made.
        members: for each name of a group, the ranks in it; groups whose ranks torch has not recorded are left out.
        has_dropped: whether the first calls aren't in the dump: the buffer keeps the last 2,000, and some dumps have
            only those that have not ended.
        progress: for each name of a group, how far the rank has got in it, as far as that is known.
    """

    rank: int
    file: Path
    version: str
    calls: tuple[RecordedCall, ...]
    members: dict[str, tuple[int, ...]]
    has_dropped: bool
    progress: dict[str, GroupProgress]


@dataclass(frozen=True)
class Dumps:
    """What was found in a folder: dumps by rank, and why others of its files could not be read.

    Attributes:
        left_out: dumps of ranks of which there is a second one, from a different run.
    """

    ranks: dict[int, RankDump] = field(default_factory=dict)
    unread: dict[Path, str] = field(default_factory=dict)
    left_out: tuple[Path, ...] = ()

    @property
    def has_open_calls_only(self) -> bool:
        """Whether calls that have ended were left out, as `TORCH_INCLUDE_ONLY_ACTIVE` does."""
        calls = [call for dump in self.ranks.values() for call in dump.calls]
        has_dropped = any(dump.has_dropped for dump in self.ranks.values())
        return has_dropped and not any(call.is_over for call in calls)

    @property
    def unread_ranks(self) -> frozenset[int]:
        """The ranks after which the files are named that could not be read."""
        return frozenset(int(number[1]) for file in self.unread if (number := _RANK.search(file.name)))

    @property
    def files(self) -> frozenset[Path]:
        """All files that are dumps, or were meant to be."""
        return frozenset([*(dump.file for dump in self.ranks.values()), *self.unread, *self.left_out])


class NoDump(ValueError):
    """A file that is something else, or broken: its text is why."""


def read_dumps(paths: str | Path | Sequence[str | Path]) -> Dumps:
    """Read the dumps in a folder and the folders below it, or the given files. Other files are passed over.

    Raises:
        CourseError: there is no such file or folder.
    """
    found: list[RankDump] = []
    unread: dict[Path, str] = {}
    for file in _files([paths] if isinstance(paths, str | Path) else paths):
        try:
            found.append(read_dump(file))
        except NoDump as error:
            unread[file] = str(error)
    chosen, left_out = _one_per_rank(found)
    beginnings = {_beginning(dump.file) for dump in chosen.values()}
    meant = {
        file: why
        for file, why in unread.items()
        if (_DUMP_NAME.search(file.name) or _beginning(file) in beginnings) and not _is_different_text(file)
    }
    return Dumps(chosen, meant, left_out)


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """The files that may be dumps: those with a number at the end of their names."""
    for path in map(Path, paths):
        try:
            if path.is_dir():
                everything = (Path(folder, name) for folder, _, names in os.walk(path) for name in sorted(names))
                for _, file in zip(range(MOST_FILES), everything, strict=False):
                    if _RANK.search(file.name) and file.is_file():
                        yield file
            elif path.is_file():
                yield path
            else:
                raise CourseError(f"{printable(str(path))}: there is no such file or folder.")
        except (OSError, ValueError) as error:
            raise CourseError(f"{printable(str(path))} cannot be read: {error}.") from None


def _is_different_text(file: Path) -> bool:
    """Whether it is text and not JSON: a rank's log may be named as dumps are."""
    try:
        with file.open("rb") as opened:
            start = opened.read(4096).lstrip()
    except OSError:
        return False
    return bool(start) and start[:1] != b"{" and not _can_be_dump(start) and b"\0" not in start


def _beginning(file: Path) -> tuple[Path, str]:
    return file.parent, _RANK.sub("", file.name)


def _one_per_rank(dumps: Sequence[RankDump]) -> tuple[dict[int, RankDump], tuple[Path, ...]]:
    """Of two dumps of a rank, the one that is named as most others are, as runs are usually told apart by name."""
    alike = Counter(_beginning(dump.file) for dump in dumps)
    chosen: dict[int, RankDump] = {}
    left_out = []
    for dump in sorted(dumps, key=lambda dump: (-alike[_beginning(dump.file)], str(dump.file))):
        if dump.rank in chosen:
            left_out.append(dump.file)
        else:
            chosen[dump.rank] = dump
    return dict(sorted(chosen.items())), tuple(left_out)


def read_dump(file: Path) -> RankDump:
    """Read the dump of one rank; its number is at the end of the file's name.

    Raises:
        NoDump: it is no dump, or broken.
    """
    number = _RANK.search(file.name)
    if not number:
        raise NoDump("its name does not end with the number of a rank")
    return dump_of(_loaded(file), int(number[1]), file)


def _loaded(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            start = opened.read(4096)
            if not start:
                raise NoDump("it is empty")
            if start.lstrip()[:1] in (b"{", b"["):
                start += opened.read(4_000_000)
            if not _can_be_dump(start):
                raise NoDump("it is neither a pickle nor JSON with a list of collectives")
            if file.stat().st_size > LARGEST:
                raise NoDump("it is too large")
            content = start + opened.read()
        return json.loads(content) if start.lstrip()[:1] in b"{[" else plain_data(content)
    except OSError as error:
        raise NoDump(f"{error.strerror or error}") from None
    except (MemoryError, RecursionError):
        raise NoDump("it does not fit into memory") from None
    except ValueError as error:
        raise error if isinstance(error, NoDump) else NoDump("its JSON is broken or cut off") from None


def _can_be_dump(start: bytes) -> bool:
    is_json = start.lstrip()[:1] in (b"{", b"[")
    return start[:1] == b"\x80" or (is_json and b'"entries"' in start and b'"traceEvents"' not in start)


class _PlainUnpickler(pickle._Unpickler):
    """Builds numbers, texts, tuples, lists and dictionaries.

    Of `pickle`'s two unpicklers this is the one written in Python. The one in C is five times as fast, but a single
    broken byte can make it take all of the machine's memory.
    """

    HARMLESS: dict[tuple[str, str], Callable[..., Any]] = {
        ("collections", "OrderedDict"): dict,
        ("torch.jit._pickle", "restore_type_tag"): lambda value, tag: value,
        **{("torch.jit._pickle", f"build_{kind}list"): list for kind in ("int", "double", "bool")},
    }
    """The few functions by which torch writes lists and dictionaries, and what they come to."""
    dispatch = {
        code: load
        for code, load in pickle._Unpickler.dispatch.items()
        if bytes([code])
        not in (pickle.BUILD, pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.BYTEARRAY8)
    }

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        try:
            return self.HARMLESS[module, name]
        except KeyError:
            raise NoDump(f"it asks for {_text(module)}.{_text(name)}, which is not run here") from None

    def persistent_load(self, pid: Any) -> Any:
        raise NoDump("it refers to data outside of the file")


def plain_data(content: bytes) -> Any:
    """Return what a pickle holds, if that is plain data.

    Raises:
        NoDump: it would run code, or is broken.
    """
    try:
        return _PlainUnpickler(io.BytesIO(content)).load()
    except (NoDump, MemoryError, RecursionError):
        raise
    except Exception:  # whatever the bytes of a stranger make of pickle's machine
        raise NoDump("its pickle is broken or cut off") from None


def dump_of(data: Any, rank: int, file: Path = Path()) -> RankDump:
    """Return what a rank has recorded, from the dictionary that torch makes of it.

    Raises:
        NoDump: it is something else.
    """
    data = {"entries": data} if isinstance(data, list) else data
    entries = data.get("entries") if isinstance(data, dict) else None
    if not isinstance(entries, list | tuple) or not all(_is_entry(entry) for entry in entries):
        raise NoDump("it is no dump of the Flight Recorder")
    calls = sorted((_call(entry, rank, number) for number, entry in enumerate(entries)), key=lambda call: call.record)
    return RankDump(
        rank, file, _text(data.get("version")), tuple(_with_state_of_their_end(calls)), _members(data.get("pg_config")),
        bool(calls) and calls[0].record > 0, _progress(data, calls),
    )  # fmt: skip


def _progress(data: dict[str, Any], calls: Sequence[RecordedCall]) -> dict[str, GroupProgress]:
    """Return how far the rank has got in each group.

    Torch counts under numbers that each rank gives its groups in the order in which they were made. A call has both
    the number and the name. For groups without a call, the names are put in order, if there is a count for each.
    """
    counted, config = data.get("pg_status"), data.get("pg_config")
    status = {_text(number): _counted(each) for number, each in counted.items()} if isinstance(counted, dict) else {}
    names = {_text(entry.get("pg_id")): _group(entry)[0] for entry in data["entries"]}
    made = [_text(name) for name in config] if isinstance(config, dict) else []
    if len(made) == len(status) and all(map(_DIGITS.fullmatch, [*made, *status])):
        in_order = dict(zip(sorted(status, key=int), sorted(made, key=int), strict=True))
        names = in_order | names if in_order | names == in_order else names
    last = {call.group: call.sequence for call in calls if not call.is_message}
    return {
        name: progress
        for number, name in names.items()
        if (progress := status.get(number)) and progress.called >= last.get(name, 0)
    }


def _counted(status: Any) -> GroupProgress | None:
    """The counts of a group: numbers, which JSON has as texts. They are -1 where torch doesn't count."""
    counts = [status.get(f"last_{what}_collective") for what in ("enqueued", "completed")] if _is_dict(status) else []
    texts = [_text(number) for number in counts]
    if not texts or not all(map(_DIGITS.fullmatch, texts)):
        return None
    called, ended = map(int, texts)
    return GroupProgress(called, ended) if ended <= called else None


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("profiling_name"), str)


def _call(entry: dict[str, Any], rank: int, number: int) -> RecordedCall:
    backend, _, name = entry["profiling_name"].rpartition(":")
    group, description = _group(entry)
    sequence = _number(entry.get("collective_seq_id", entry.get("seq_id")), number)
    operation, sender, receiver = name, -1, -1
    if message := _MESSAGE.match(name):
        operation, first, second = message["operation"], int(message["first"]), int(message["second"])
        sender, receiver = (first, second) if operation == "send" else (second, first)
    is_message = bool(message) or entry.get("is_p2p") is True
    return RecordedCall(
        rank=rank,
        record=_number(entry.get("record_id"), number),
        group=group,
        description=description,
        backend=_text(backend),
        operation=_text(operation),
        is_message=is_message,
        sequence=_number(entry.get("p2p_seq_id"), sequence) if is_message else sequence,
        sender=sender,
        receiver=receiver,
        inputs=_shapes(entry.get("input_sizes")),
        outputs=_shapes(entry.get("output_sizes")),
        types=_types(entry.get("input_dtypes")) or _types(entry.get("output_dtypes")),
        state=_text(entry.get("state")),
        is_retired=entry.get("retired") is True,
        created=1e-9 * _number(entry.get("time_created_ns"), 0),
        line=program_line(entry.get("frames")),
    )


def _group(entry: dict[str, Any]) -> tuple[str, str]:
    """Name and description; before version 2.1 there is only a number."""
    group = entry.get("process_group", entry.get("pg_id", 0))
    if isinstance(group, list | tuple) and len(group) == 2:
        return _text(group[0]), _text(group[1])
    return _text(group), ""


def _with_state_of_their_end(calls: Sequence[RecordedCall]) -> Iterator[RecordedCall]:
    """Torch notes the state of coalesced calls in the last of them, which has the same number; give it to all."""
    together: dict[tuple[str, bool, int], list[RecordedCall]] = defaultdict(list)
    for call in calls:
        together[call.group, call.is_message, call.sequence].append(call)
    for call in calls:
        end = together[call.group, call.is_message, call.sequence][-1]
        is_coalesced = end.operation.lower().endswith("coalesced")
        yield replace(call, state=end.state, is_retired=end.is_retired) if is_coalesced else call


def _members(config: Any) -> dict[str, tuple[int, ...]]:
    members = {}
    for name, group in config.items() if isinstance(config, dict) else ():
        ranks = group.get("ranks") if isinstance(group, dict) else group
        try:
            ranks = json.loads(ranks) if isinstance(ranks, str) else ranks
        except (ValueError, RecursionError):
            continue
        if isinstance(ranks, list | tuple) and ranks and all(_is_rank(rank) for rank in ranks):
            members[_text(name)] = tuple(ranks)
    return members


def _is_rank(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10_000_000


def _shapes(sizes: Any) -> Shapes:
    shapes = [shape for shape in sizes if isinstance(shape, list | tuple)] if isinstance(sizes, list | tuple) else []
    return tuple(tuple(_number(length, 0) for length in shape[:MOST_DIMENSIONS]) for shape in shapes)


def _types(names: Any) -> tuple[str, ...]:
    texts = [_text(name) for name in names] if isinstance(names, list | tuple) else []
    return tuple(_TENSOR_TYPES.get(text, text) for text in texts if text)


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and abs(value) < 1 << 63 else otherwise


def _text(value: Any) -> str:
    """A short text of a stranger, for a sentence: in one line, and of what can be shown."""
    if not isinstance(value, str | int) or (isinstance(value, int) and abs(value) >= 1 << 63):
        return ""
    return "".join(letter if letter.isprintable() else " " for letter in printable(str(value)[:200]))


def program_line(frames: Any) -> ProgramLine | None:
    """Return the innermost line of a program, or else of a package that uses torch. Stacks begin with the innermost."""
    lines = []
    for frame in frames if isinstance(frames, list | tuple) else ():
        file = _text(frame.get("filename")).replace("\\", "/") if isinstance(frame, dict) else ""
        if (file.endswith(".py") or _CELL.search(file)) and not (_TORCH.search(file) or _COURSE.search(file)):
            lines.append(ProgramLine(file, _number(frame.get("line"), 0), _text(frame.get("name"))))
    return next((line for line in lines if not _INSTALLED.search(line.file)), lines[0] if lines else None)

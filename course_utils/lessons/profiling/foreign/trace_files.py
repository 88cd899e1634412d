"""Finds the files of a profile among paths, folders and archives, and opens them as text, packed or not.

What is no trace is told apart by its first bytes, by what is in it, and last by its name.
"""

import bz2
import codecs
import gzip
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from glob import glob
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

PIECE = 1 << 20
"""Bytes that are read at a time."""
MOST_FILES = 2000
"""More files than this are not one profile."""
CANNOT_READ = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
"""What Python's own modules raise for a file that is broken or ends too early; RuntimeError comes with passwords."""
_NAMES = re.compile(
    r"\.(json|trace)(\.(gz|bz2|xz|zst))?$|trace[^/]*\.(gz|bz2|xz)$|\.(zip|tar|tgz)$|\.tar\.\w+$", re.IGNORECASE
)
_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_NOT_LOOKED_INTO = {"__pycache__", "node_modules", "site-packages", "__MACOSX"}
_HEAD = 512
_ONE_VALUE = re.compile(rb'(?:null|true|false|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"[^"\\]*")\s*')
"""A whole text that is JSON without being a list or an object."""
_UNPACKERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream, mode="rb"),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileKind(Enum):
    """What a file is that is no trace of torch.profiler, where it can be told."""

    EMPTY = auto()
    PICKLE = auto()
    CHECKPOINT = auto()
    DATABASE = auto()
    NSYS = auto()
    PERFETTO = auto()
    WEB_PAGE = auto()
    LFS_POINTER = auto()
    ZSTD = auto()
    PICTURE = auto()
    BINARY = auto()
    TEXT = auto()
    BROKEN = auto()
    """Packed, and cannot be unpacked."""
    LOCKED = auto()
    """An archive that asks for a password."""
    NO_EVENTS = auto()
    """A trace without an event that takes time."""
    CUT_BEFORE_EVENTS = auto()
    """JSON that ends before the first event."""
    JSON = auto()
    NO_READABLE_EVENTS = auto()
    """JSON with a list whose events lack numbers."""
    ROCPROF = auto()
    EXECUTION_TRACE = auto()
    MEMORY_TIMELINE = auto()
    FLIGHT_RECORDER = auto()
    NOTEBOOK = auto()
    BROWSER_TRACE = auto()
    TENSORFLOW_TRACE = auto()
    VIZTRACER_TRACE = auto()
    OTHER_TRACE = auto()
    """In Chrome's format, and from a program that is not torch."""


class NotATrace(Exception):
    """A file is something else: `kind`."""

    def __init__(self, kind: FileKind) -> None:
        super().__init__(kind)
        self.kind = kind


class PathProblem(Enum):
    """Why a path leads to no file."""

    MISSING = auto()
    NOT_ALLOWED = auto()
    NO_FILE = auto()
    """A device, or something else that has no end."""
    NO_TRACES_IN_FOLDER = auto()
    TOO_MANY = auto()


class NoFiles(Exception):
    """A path leads to no file: `problem`."""

    def __init__(self, problem: PathProblem, path: Path) -> None:
        super().__init__(problem, path)
        self.problem, self.path = problem, path


@dataclass(frozen=True)
class Source:
    """Something that may be a trace: a file, or a file in an archive.

    Attributes:
        name: as it is shown; where it was found in a folder or in an archive, with the way to it from there.
        open: opens it, packed as it is.
    """

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def sources(paths: Sequence[Path]) -> list[Source]:
    """All files that paths lead to: the files themselves, and what looks like a trace in folders and archives.

    Raises:
        NoFiles: one of the paths leads to nothing.
    """
    found: dict[str, Source] = {}
    for path in paths:
        for file, name in _files(path):
            found.setdefault(os.path.realpath(file), Source(name, partial(open, file, "rb")))
            if len(found) > MOST_FILES:
                raise NoFiles(PathProblem.TOO_MANY, path)
    return [inner for file, source in found.items() for inner in _unfolded(Path(file), source)]


def _files(path: Path) -> list[tuple[Path, str]]:
    """The files that a path leads to, and their names."""
    path = path.expanduser() if str(path).startswith("~") else path
    try:
        if path.is_dir():
            return _in_folder(path)
        if path.is_file() or path.is_fifo():
            return [(path, path.name)]
        if path.exists():
            raise NoFiles(PathProblem.NO_FILE, path)
        if matching := sorted(glob(str(path))):
            return [file for each in matching for file in _files(Path(each))]
    except PermissionError:
        raise NoFiles(PathProblem.NOT_ALLOWED, path) from None
    except (OSError, ValueError, RuntimeError):  # a name that is too long, or that no file can have; no home
        pass
    raise NoFiles(PathProblem.MISSING, path)


def _in_folder(folder: Path) -> list[tuple[Path, str]]:
    """Files in a folder, and in the folders in it, whose names are those of traces; a packed twin is left out."""
    if not os.access(folder, os.R_OK | os.X_OK):
        raise NoFiles(PathProblem.NOT_ALLOWED, folder)
    found = []
    for inner, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_LOOKED_INTO)
        known = set(files)
        for name in sorted(files, key=in_order):
            file = Path(inner, name)
            is_twin = file.suffix in _PACKED and file.stem in known
            if _NAMES.search(name) and not name.startswith(".") and not is_twin and file.is_file():
                found.append((file, str(file.relative_to(folder))))
        if len(found) > MOST_FILES:
            raise NoFiles(PathProblem.TOO_MANY, folder)
    if not found:
        raise NoFiles(PathProblem.NO_TRACES_IN_FOLDER, folder)
    return found


def in_order(name: str) -> list[tuple[int, int, str]]:
    """A key to sort names by, which has 10 behind 9."""
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"(\d{1,18})", name) if part]


def _unfolded(file: Path, source: Source) -> list[Source]:
    """The files in an archive; what is no archive is given back as it is."""
    if not file.is_file():
        return [source]
    try:
        if zipfile.is_zipfile(file) and not _is_packed_otherwise(file):
            return _in_zip(file, source)
        if ".tar" in file.name.lower() or file.name.lower().endswith(".tgz"):
            return _in_tar(file, source)
    except (*CANNOT_READ, RuntimeError):
        return [source]
    return [source]


def _is_packed_otherwise(file: Path) -> bool:
    """Whether a file that ends like a ZIP archive begins like something else."""
    with open(file, "rb") as stream:
        return stream.read(2) != b"PK"


def _in_zip(file: Path, source: Source) -> list[Source]:
    with zipfile.ZipFile(file) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if any(name.endswith("data.pkl") for name in names):
        return [source]  # torch.save has written it

    @contextmanager
    def opened(name: str) -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(file) as archive, archive.open(name) as stream:
            yield stream

    return _members(source, names, opened)


def _in_tar(file: Path, source: Source) -> list[Source]:
    with tarfile.open(file) as archive:
        names = [info.name for info in archive if info.isfile()]

    @contextmanager
    def opened(name: str) -> Iterator[IO[bytes]]:
        with tarfile.open(file) as archive:
            if (stream := archive.extractfile(name)) is None:
                raise OSError(f"{name} is no file")
            yield stream

    return _members(source, names, opened)


def _members(source: Source, names: Sequence[str], opened: Callable[[str], Any]) -> list[Source]:
    """The files of an archive, as sources; of several those whose names are those of traces."""
    visible = [name for name in names if not re.search(r"(^|/)(\.|__MACOSX)", name)]
    fitting = [name for name in visible if _NAMES.search(name)] or visible
    inner = [Source(f"{source.name}/{name}", lambda name=name: opened(name)) for name in sorted(fitting, key=in_order)]
    return inner[:MOST_FILES] or [source]


@contextmanager
def text_of(source: Source) -> Iterator[Iterator[str]]:
    """A file's text, piece by piece, unpacked; what is broken further on ends it.

    Raises:
        NotATrace: the file is not text, or cannot be read.
    """
    with ExitStack() as opened:
        try:
            stream, head = _unpacked(opened.enter_context(source.open()))
        except (PermissionError, RuntimeError) as error:  # the latter is zipfile's, of a file with a password
            raise NotATrace(FileKind.LOCKED) from error
        except CANNOT_READ as error:
            raise NotATrace(FileKind.BROKEN) from error
        if kind := kind_of(head, source.name):
            raise NotATrace(kind)
        yield _pieces(stream, head)


def _unpacked(packed: Any) -> tuple[Any, bytes]:
    """A stream of what is in a packed one, however often it was packed, and its first bytes."""
    stream = packed
    for _ in range(3):
        buffered = stream if hasattr(stream, "peek") else BufferedReader(stream)
        head = buffered.peek(_HEAD)
        stream = next((unpack(buffered) for mark, unpack in _UNPACKERS.items() if head.startswith(mark)), buffered)
        if stream is buffered:
            break
    return stream, _first_bytes(stream)


def _first_bytes(stream: Any) -> bytes:
    """So many bytes as decide, without taking them from the stream."""
    return stream.peek(_HEAD)[: 8 * _HEAD]


def _pieces(stream: Any, head: bytes) -> Iterator[str]:
    """The text of a stream; characters that cannot be decoded are replaced."""
    decoder = codecs.getincrementaldecoder(_encoding(head))(errors="replace")
    data = b"more"
    while data:
        data = _piece(stream)
        if text := decoder.decode(data, final=not data).lstrip("\ufeff"):
            yield text


def _piece(stream: Any) -> bytes:
    """The next bytes of a stream, all that can be read before it breaks off; none at its end."""
    parts, size = [], 0
    while size < PIECE:
        try:
            part = stream.read1(PIECE)
        except CANNOT_READ:
            break
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _encoding(head: bytes) -> str:
    """How a file's text is written; PowerShell writes UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head[1:2] == b"\x00":
        return "utf-16-le"
    return "utf-16-be" if head[:1] == b"\x00" and head[1:2] in (b"{", b"[") else "utf-8"


def kind_of(head: bytes, name: str) -> FileKind | None:
    """What a file is, by its first bytes and its name; None if it may be JSON."""
    if not head:
        return FileKind.EMPTY
    if head.startswith(_MARKS) or head[1:2] == b"\x00" and head[:1] in (b"{", b"["):
        return None
    begins = {
        b"PK\x03\x04": FileKind.CHECKPOINT,
        b"PK\x05\x06": FileKind.EMPTY,
        b"SQLite format 3": FileKind.DATABASE,
        b"\x28\xb5\x2f\xfd": FileKind.ZSTD,
        b"version https://git-lfs": FileKind.LFS_POINTER,
        b"\x89PNG": FileKind.PICTURE,
        b"\xff\xd8\xff": FileKind.PICTURE,
        b"%PDF": FileKind.PICTURE,
    }
    for begin, kind in begins.items():
        if head.startswith(begin):
            return kind
    lower = name.lower()
    if lower.endswith((".nsys-rep", ".qdrep", ".ncu-rep")):
        return FileKind.NSYS
    if lower.endswith((".pftrace", ".perfetto-trace", ".perfetto")):
        return FileKind.PERFETTO
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return FileKind.PICKLE
    text = head.lstrip(b" \t\r\n,\x00")
    if _ONE_VALUE.fullmatch(text):
        return FileKind.JSON
    if text[:1] in (b"{", b"["):
        return None
    if text[:1] == b"<":
        return FileKind.WEB_PAGE
    if head[:1] == b"\n" and any(byte < 9 for byte in head):
        return FileKind.PERFETTO  # field 1 of a protobuf, which a list of packets begins with
    if any(byte < 9 or 13 < byte < 27 for byte in head):
        return FileKind.BINARY
    return FileKind.TEXT if text else FileKind.EMPTY

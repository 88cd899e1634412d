"""Find the files of a log, and read them."""

import bz2
import gzip
import json
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import BinaryIO

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.clocks import stamp_of
from course_utils.lessons.gpu_nodes.failures.reading.identities import Owner
from course_utils.lessons.gpu_nodes.failures.reading.log_names import EmptyFile, LogContent, in_natural_order, owners_of
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import assembled, numbered_pieces
from course_utils.progress_bar import ProgressBar

_MOST_BYTES = 2 * 2**30
_GLANCE = 4 * 2**20
_SAMPLE = 64 * 2**10
_NAMES = re.compile(
    r"\.(?:log|out|err|txt|stdout|stderr|output|[oe]?\d+)(?:\.\d+)?(?:\.(?:gz|bz2|xz))?$|^[^.]+$|^error\.json$",
    re.IGNORECASE,
)
"""What logs are called: as Slurm, PBS, torchrun and people name them, or without an ending."""
_OTHER_NAMES = re.compile(
    r"^(?:README|LICEN[CS]E|Makefile|Dockerfile|requirements.*|debug(?:-internal)?\.log|.*\.egg-info)", re.IGNORECASE
)
_OTHER_FOLDERS = {"__pycache__", "node_modules", "site-packages", "wandb"}
_CODES = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BINARY_BEGINNINGS = (
    b"\x7fELF",
    b"PK\x03\x04",
    b"\x93NUMPY",
    b"\x80\x02",
    b"\x80\x04",
    b"\x89PNG",
    b"%PDF",
    b"\x89HDF",
)
_WIDE_BEGINNINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_COMPRESSED: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),  # type: ignore[return-value]
    b"BZh": lambda stream: bz2.BZ2File(stream),  # type: ignore[return-value]
    b"\xfd7zXZ\0": lambda stream: lzma.LZMAFile(stream),  # type: ignore[return-value] # noqa: SIM115
}
"""How a compressed file begins → what reads it."""
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
"""What a compressed file raises if its end is missing."""
_MARKED_RANK = re.compile(rb"\[rank(\d{1,6})\]|\[Rank (\d{1,6})\]|Rank (\d{1,6})\]")
_LATIN = {0xDC00 + code: chr(code) for code in range(128, 256)}
"""Bytes that are no UTF-8, as Python keeps them, → what they mean in Latin-1."""
_ADVICE = "Give the file that holds what the launch printed"


class WhyLeftOut(Enum):
    """Why a file of a folder was not read."""

    NO_LOG = auto()
    """By its name, it is something else."""
    BINARY = auto()
    EMPTY = auto()
    UNREADABLE = auto()
    """Nobody may read it, or it is no ordinary file."""


@dataclass(frozen=True)
class LeftOut:
    """A file of a folder that was not read."""

    file: str
    why: WhyLeftOut


@dataclass(frozen=True)
class Logs:
    """What was read.

    Attributes:
        lines: of all files, one file after the other.
        files: those that were read, as the reader would type them.
        left_out: those of folders that were not.
        empty: those that hold nothing.
    """

    lines: list[Line]
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    empty: tuple[EmptyFile, ...] = ()


class _NoLog(Exception):
    """A file can't be read as a log; the text says why."""

    def __init__(self, why: WhyLeftOut, text: str) -> None:
        super().__init__(text)
        self.why = why


def read_logs(paths: Iterable[Path | str], but: Collection[Path] = ()) -> Logs:
    """Read logs: files and folders, compressed by gzip, bzip2 or xz, or not.

    Of a folder, what is no log is left out: programs, notebooks, checkpoints, core dumps.

    Args:
        but: files among them that are known to be something else.

    Raises:
        CourseError: there is nothing to read, or a file that was asked for can't be read.
    """
    left_out: list[LeftOut] = []
    contents: dict[str, LogContent] = {}
    with ProgressBar("reading logs") as bar:
        for file, is_asked_for in _files(paths, left_out):
            if Path(file) in but:
                continue
            try:
                contents[file] = _glance(Path(file))
            except _NoLog as reason:
                if is_asked_for and reason.why is not WhyLeftOut.EMPTY:
                    raise CourseError(str(reason)) from None
                left_out.append(LeftOut(file, reason.why))
            bar.refresh()
        empty = [each.file for each in left_out if each.why is WhyLeftOut.EMPTY]
        if not contents and not but and empty and not any(Path(path).is_dir() for path in paths):
            raise CourseError(f"{empty[0]} is empty. {_ADVICE}, standard error included.")
        if not contents and not but:
            names = ", ".join(str(path) for path in paths) or "Nothing"
            raise CourseError(f"There is no log in {names}. {_ADVICE}, or a folder of such files.")
        owners = owners_of(contents | dict.fromkeys(empty, LogContent()))
        silent = tuple(EmptyFile(file, owners[file].rank) for file in empty)
        return Logs(_lines_of_files(contents, owners, bar), tuple(contents), tuple(left_out), silent)


def _files(paths: Iterable[Path | str], left_out: list[LeftOut]) -> Iterator[tuple[str, bool]]:
    """Yield each file once, and whether it was asked for by its own name."""
    seen: set[tuple[int, int]] = set()
    for path in map(Path, paths):
        found = _in_folder(path, left_out) if path.is_dir() else [str(path)]
        for file in found:
            try:
                status = os.stat(file)
            except OSError as error:
                if not path.is_dir():
                    raise CourseError(f"{file} cannot be read: {error.strerror}. {_ADVICE}.") from None
                left_out.append(LeftOut(file, WhyLeftOut.UNREADABLE))
                continue
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield file, not path.is_dir()


def _in_folder(folder: Path, left_out: list[LeftOut]) -> Iterator[str]:
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _OTHER_FOLDERS and not name.startswith("."))
        for name in names:
            file = os.path.join(parent, name)
            if name.startswith(".") or not _NAMES.search(name) or _OTHER_NAMES.match(name):
                left_out.append(LeftOut(file, WhyLeftOut.NO_LOG))
            else:
                found.append(file)
    yield from sorted(found, key=in_natural_order)


def _glance(file: Path) -> LogContent:
    """Look into a file: whether it is text, which ranks are marked in it, and the first date."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _NoLog(WhyLeftOut.UNREADABLE, f"{file} is not a file that holds text. {_ADVICE}.")
        if status.st_size > _MOST_BYTES:
            size = f"{status.st_size / 1e9:.1f} GB"
            raise _NoLog(
                WhyLeftOut.UNREADABLE, f"{file} is too long, {size}. Give its end: tail -c 1G {file} > end.log"
            )
        with _opened(file) as stream:
            sample = _some(stream, _GLANCE)
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise _NoLog(WhyLeftOut.UNREADABLE, f"{file} cannot be read: {reason}. {_ADVICE}.") from None
    if not sample.strip(b"\0 \t\r\n"):
        raise _NoLog(WhyLeftOut.EMPTY, f"{file} is empty. {_ADVICE}, standard error included.")
    if _is_binary(sample[:_SAMPLE]):
        raise _NoLog(WhyLeftOut.BINARY, f"{file} is not text. {_ADVICE}.")
    ranks = frozenset(int(next(filter(None, groups))) for groups in _MARKED_RANK.findall(sample))
    stamps = (stamp_of(line.decode(errors="replace")) for line in sample.split(b"\n", 10_000)[:10_000])
    return LogContent(ranks, next((stamp.seconds for stamp in stamps if stamp and stamp.is_complete), None))


def _opened(file: Path) -> BinaryIO:
    stream = open(file, "rb")  # noqa: SIM115
    beginning = stream.read(6)
    stream.seek(0)
    for first, reader in _COMPRESSED.items():
        if beginning.startswith(first):
            return reader(stream)
    return stream


def _some(stream: BinaryIO, size: int) -> bytes:
    """The beginning of a file; of one that is compressed and damaged, what can be had."""
    parts = []
    try:
        while size > 0 and (part := stream.read(min(size, 2**16))):
            parts.append(part)
            size -= len(part)
    except _DAMAGED:
        pass
    return b"".join(parts)


def _is_binary(sample: bytes) -> bool:
    if sample.startswith(_BINARY_BEGINNINGS):
        return True
    if sample[:2] in _WIDE_BEGINNINGS:
        return False
    # A file that was cut while it was written has a run of zeros in it.
    text = re.sub(rb"\0{16,}", b"", sample)
    return len(_CODES.findall(text)) + text.count(0) > 0.1 * len(text)


def _lines_of_files(contents: dict[str, LogContent], owners: dict[str, Owner], bar: ProgressBar) -> list[Line]:
    dates = [content.first for content in contents.values() if content.first is not None]
    lines: list[Line] = []
    for file, content in contents.items():
        near = content.first if content.first is not None else dates[0] if dates else Path(file).stat().st_mtime
        if Path(file).name == "error.json" and (found := _lines_of_error_file(file, owners[file])):
            lines += found
            continue
        pieces = numbered_pieces(_refreshing(_decoded(Path(file)), bar))
        lines += assembled(pieces, file, owners[file], near)
    return lines


def _refreshing(lines: Iterable[tuple[int, str]], bar: ProgressBar) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if number % 10_000 == 0:
            bar.refresh()
        yield number, line


def _decoded(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, with their numbers. What is no UTF-8 is taken for Latin-1."""
    number = 0
    with _opened(file) as stream:
        wide = _WIDE_BEGINNINGS.get(stream.read(2))
        stream.seek(0)
        try:
            if wide:
                yield from enumerate(stream.read().decode(wide, "replace").split("\n"), 1)
                return
            for number, line in enumerate(stream, 1):
                yield number, _text_of(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
        except (*_DAMAGED, OSError):
            # The end of the file is missing. What is there is read.
            return


def _text_of(line: bytes) -> str:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="surrogateescape").translate(_LATIN)


def _lines_of_error_file(file: str, owner: Owner) -> Sequence[Line]:
    """The exception that torch's `record` has written as JSON, or nothing if the file holds something else."""
    try:
        message = json.loads(Path(file).read_bytes())["message"]
        extra = message["extraInfo"]
        texts, time = str(extra["py_callstack"]).split("\n"), float(extra["timestamp"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [Line(text, 1, file, owner.rank, owner.node, time) for text in texts if text.strip()]

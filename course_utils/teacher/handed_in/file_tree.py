"""List the files that were handed in: in folders, in zips, and in zips within these. Only notebooks are unpacked.

Nothing is written outside the folder for unpacked files, whatever a zip's names say, and never more than `MOST_BYTES`.
The format is read by the standard library's `zipfile`, which also decrypts and unpacks; what it leaves to its callers
is here: names in other encodings, paths that lead out of the archive, links, and archives that are far too large.

Source: PKWARE's APPNOTE.TXT 6.3.10: 4.4.4, the flag for encryption (bit 0) and for names in UTF-8 (bit 11).
"""

import contextlib
import os
import stat
import time
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

MOST_BYTES = 2 << 30
"""Of all that is unpacked from one zip, zips in it included."""
LARGEST_FILE = 256 << 20
"""Bytes of a file that is unpacked; the same limit as for notebooks that lie in a folder."""
MOST_ENTRIES = 50_000
DEEPEST = 2
"""Zips within the zip that was named: a learner's, and one in that."""
_UTF8_NAMES, _ENCRYPTED = 0x800, 0x1
_LEFT_BY_PROGRAMS = ("__macosx", ".ipynb_checkpoints", "thumbs.db", "desktop.ini", "__pycache__")
"""What systems and editors leave behind; so does everything whose name begins with a dot."""


class Rejection(Enum):
    """Why a file cannot be read."""

    NO_NOTEBOOK = auto()
    EMPTY_FOLDER = auto()
    ENCRYPTED = auto()
    BROKEN_ZIP = auto()
    OUTSIDE = auto()
    LINK = auto()
    TOO_LARGE = auto()
    TOO_DEEP = auto()


@dataclass(frozen=True)
class FoundFile:
    """A file that was handed in.

    Attributes:
        parts: its path from the folder or zip that was named; a zip within it counts as a folder of that name.
        file: where it can be read; None for what is not unpacked.
        rejection: why it is not read; None where it is.
        modified: seconds since 1970, in a zip without a time zone; None where that is not known.
    """

    parts: tuple[str, ...]
    file: Path | None = None
    rejection: Rejection | None = None
    modified: float | None = None


@dataclass
class Listing:
    """What lies in a folder or a zip.

    Attributes:
        files: those to be read, and those that are rejected.
        ignored: how many files of systems and editors were passed over.
        folders: all folders, for those that hold nothing.
    """

    files: list[FoundFile]
    ignored: int
    folders: set[tuple[str, ...]]

    def add_empty_folders(self) -> None:
        """Add a rejection for each folder without files, but not for the folders in it."""
        filled = {found.parts[:depth] for found in self.files for depth in range(len(found.parts))}
        empty = {folder for folder in self.folders if folder and folder not in filled}
        highest = sorted(folder for folder in empty if not any(folder[:depth] in empty for depth in range(len(folder))))
        self.files += [FoundFile(folder, rejection=Rejection.EMPTY_FOLDER) for folder in highest]


def is_left_by_a_program(part: str) -> bool:
    """Whether a file or folder of this name was written by a system or an editor, and not by a learner."""
    return part.startswith(".") or part.casefold() in _LEFT_BY_PROGRAMS


def list_folder(folder: Path, suffix: str, scratch: Path) -> Listing:
    """List a folder and what is below it.

    Args:
        folder: what was handed in.
        suffix: of the files that are wanted, such as ".ipynb"; upper and lower case are the same.
        scratch: where files of zips are unpacked.
    """
    listing = Listing([], 0, set())
    for above, folders, names in os.walk(folder):
        parts = Path(above).relative_to(folder).parts
        hidden = [name for name in folders if is_left_by_a_program(name)]
        listing.ignored += sum(len(files) for name in hidden for _, _, files in os.walk(Path(above, name)))
        folders[:] = sorted(set(folders) - set(hidden))
        listing.folders.add(parts)
        for name in sorted(names):
            file = Path(above, name)
            if is_left_by_a_program(name):
                listing.ignored += 1
            else:
                _add_file(listing, file, (*parts, name), suffix, scratch)
    listing.add_empty_folders()
    return listing


def list_file(file: Path, suffix: str, scratch: Path) -> Listing:
    """List a single file: itself, or what is in it if it is a zip."""
    listing = Listing([], 0, set())
    if is_zip(file):
        _ZipReader(listing, suffix, scratch).read(file, (), 0)
    else:
        _add_file(listing, file, (file.name,), suffix, scratch)
    listing.add_empty_folders()
    return listing


def is_called(name: str, suffix: str) -> bool:
    """Whether a name ends so, also with what some browsers add when they save a page: `04_messages.ipynb.txt`."""
    return name.casefold().endswith((suffix, f"{suffix}.txt", f"{suffix}.json"))


def is_zip(file: Path) -> bool:
    """Whether it is called a zip, and is a plain file."""
    return file.suffix.casefold() == ".zip" and file.is_file() and not file.is_symlink()


def _add_file(listing: Listing, file: Path, parts: tuple[str, ...], suffix: str, scratch: Path) -> None:
    if is_zip(file):
        _ZipReader(listing, suffix, scratch).read(file, parts, 1)
        return
    rejection = None if is_called(file.name, suffix) else Rejection.NO_NOTEBOOK
    with contextlib.suppress(OSError):
        listing.files.append(FoundFile(parts, file, rejection, file.lstat().st_mtime))


class _ZipReader:
    """Adds what is in a zip, and in the zips in it, to a listing. All of them share the bytes that may be unpacked."""

    def __init__(self, listing: Listing, suffix: str, scratch: Path) -> None:
        self._listing, self._suffix, self._scratch = listing, suffix, scratch
        self._left = MOST_BYTES

    def read(self, file: Path, above: tuple[str, ...], depth: int) -> None:
        """Add the entries of a zip.

        Args:
            above: the path to it; () if it was named itself.
            depth: how many zips it is in.
        """
        if depth > DEEPEST:
            self._reject(above, Rejection.TOO_DEEP)
            return
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, zlib.error, EOFError):
            self._reject(above or (file.name,), Rejection.BROKEN_ZIP)
            return
        with archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES:
                self._reject(above or (file.name,), Rejection.TOO_LARGE)
                return
            self._listing.folders.add(above)
            for entry in entries:
                self._add_entry(archive, entry, above, depth)

    def _reject(self, parts: tuple[str, ...], rejection: Rejection) -> None:
        self._listing.files.append(FoundFile(parts, None, rejection))

    def _add_entry(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, above: tuple[str, ...], depth: int) -> None:
        inside = [part for part in name_of(entry).replace("\\", "/").split("/") if part not in ("", ".")]
        parts = (*above, *(part for part in inside if part != ".."))
        outside = name_of(entry).startswith(("/", "\\")) or ".." in inside or (inside and inside[0].endswith(":"))
        if any(map(is_left_by_a_program, (part for part in inside if part != ".."))):
            self._listing.ignored += not entry.is_dir()
            if "__macosx" not in map(str.casefold, inside):  # which repeats the folders of the archive
                first = next(number for number, part in enumerate(inside) if is_left_by_a_program(part))
                self._listing.folders |= {parts[: len(above) + number] for number in range(first + 1)}
            return
        rejection = Rejection.OUTSIDE if outside else _rejection_of(entry, self._suffix, self._left)
        if rejection in (Rejection.OUTSIDE, Rejection.LINK):
            self._reject(parts, rejection)
            return
        self._listing.folders |= {parts[:number] for number in range(len(above), len(parts) + entry.is_dir())}
        if entry.is_dir():
            return
        unpacked = None
        if rejection is None:
            unpacked = self._new_file(inside[-1])
            self._left -= entry.file_size
            rejection = _unpack(archive, entry, unpacked)
        if rejection is None and unpacked is not None and is_zip(unpacked):
            self.read(unpacked, parts, depth + 1)
        else:
            self._listing.files.append(FoundFile(parts, unpacked, rejection, _modified(entry)))

    def _new_file(self, name: str) -> Path:
        """A file in a folder of its own: verdicts name the file, so it keeps its name."""
        folder = self._scratch / str(len(os.listdir(self._scratch)))
        folder.mkdir()
        return folder / _short(name)


def _short(name: str) -> str:
    """A file's name that every file system can hold, with its ending in lower case."""
    path = Path("".join(letter for letter in name if letter.isprintable()))
    return path.stem.encode(errors="ignore")[:100].decode(errors="ignore") + path.suffix.casefold()


def name_of(entry: zipfile.ZipInfo) -> str:
    """The name of a zip's entry, composed (NFC): a Mac writes letters and their accents apart.

    By the format, a name without the flag for UTF-8 is in code page 437. Macs and some servers write UTF-8 without
    the flag; what is valid UTF-8 with letters beyond ASCII is hardly ever anything else.
    """
    name = entry.filename
    if not entry.flag_bits & _UTF8_NAMES:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _rejection_of(entry: zipfile.ZipInfo, suffix: str, left: int) -> Rejection | None:
    """Why an entry is not unpacked, as far as its header tells."""
    if stat.S_ISLNK(entry.external_attr >> 16):
        return Rejection.LINK
    if not is_called(entry.filename, suffix) and not is_called(entry.filename, ".zip") and not entry.is_dir():
        return Rejection.NO_NOTEBOOK
    if entry.flag_bits & _ENCRYPTED:
        return Rejection.ENCRYPTED
    return Rejection.TOO_LARGE if entry.file_size > min(LARGEST_FILE, left) else None


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> Rejection | None:
    """Write an entry into a file; never more bytes than its header says, which `zipfile` sees to."""
    try:
        with archive.open(entry) as source, target.open("wb") as file:
            while block := source.read(1 << 20):
                file.write(block)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError):
        return Rejection.BROKEN_ZIP
    except RuntimeError:  # so zipfile calls a password that is missing
        return Rejection.ENCRYPTED
    return None


def _modified(entry: zipfile.ZipInfo) -> float | None:
    try:
        return time.mktime((*entry.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return None


def files_of(path: Path, suffix: str, scratch: Path) -> Listing:
    """List what was named: a folder, a zip, or a file."""
    return list_folder(path, suffix, scratch) if path.is_dir() else list_file(path, suffix, scratch)

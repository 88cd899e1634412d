"""Find what each learner handed in: the newest notebook of each name, and every file that is none.

A learner is known by what a platform calls the file (`portal_names`), else by the folder, else by the file's name:
`ada/04_messages.ipynb` and `04_messages_ada.ipynb` are both ada's.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS
from course_utils.teacher.handed_in.file_tree import FoundFile, Listing, Rejection, files_of
from course_utils.teacher.handed_in.portal_names import (
    Portal,
    PortalName,
    looks_like_ilias,
    portal_name,
    repetition,
    without_repetition,
)

NOTEBOOK = ".ipynb"
_PAGES = frozenset(page.stem for lesson in LESSONS for page in lesson.notebooks)
_OF_THE_COURSE = frozenset(
    ("exercises", "notebooks", "submitted", "submission", "submissions", "handed_in", "abgaben", "work")
) | frozenset(lesson.stem for lesson in LESSONS)
"""Folders that are nobody's name."""


@dataclass(frozen=True)
class Learner:
    """Who handed something in, as far as names tell.

    Attributes:
        name: as a person would write it.
        id, login: on the platform; "" if unknown.
        portal: the platform that named the file, or None.
    """

    name: str
    id: str = ""
    login: str = ""
    portal: Portal | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What two files of the same learner have in common."""
        return (self.portal or "", self.id or self.name.casefold())


@dataclass(frozen=True)
class HandIn:
    """A file that somebody handed in.

    Attributes:
        learner: whose it is.
        name: its path, as tables show it; no two files have the same.
        file: where it can be read; None if it is rejected.
        own_name: what the learner called it, without what was added because there was one of this name.
        late: whether the platform marks it as late; None if its names hold no such mark.
        handed_in: seconds since 1970, or None if nothing tells.
        attempt: a newer file of the same name has a larger one.
        rejection: why it is not read; None for what will be.
    """

    learner: Learner
    name: str
    file: Path | None
    own_name: str
    late: bool | None = None
    handed_in: float | None = None
    attempt: tuple[float, ...] = ()
    rejection: Rejection | None = None


@dataclass(frozen=True)
class HandIns:
    """All that was handed in.

    Attributes:
        submissions: files to be read, in the order of their names.
        rejected: what cannot be read, of learners of whom nothing can; each is to get a line.
        passed_over: further files of learners who handed in a notebook.
        replaced: older files, each with the newer one of the same learner and name.
        ignored: how many files of systems and editors there were, and pages of the course.
    """

    submissions: tuple[HandIn, ...]
    rejected: tuple[HandIn, ...] = ()
    passed_over: tuple[HandIn, ...] = ()
    replaced: tuple[tuple[HandIn, HandIn], ...] = ()
    ignored: int = 0

    @property
    def learners(self) -> list[Learner]:
        """Everybody who handed in anything, in the order of first files."""
        everyone = [file.learner for file in (*self.submissions, *self.rejected)]
        return list({learner.key: learner for learner in everyone}.values())

    @property
    def portal(self) -> Portal | None:
        """The platform that named most of the files, or None."""
        named = Counter(file.learner.portal for file in (*self.submissions, *self.rejected))
        return named.most_common(1)[0][0] if named else None


def find_hand_ins(paths: Iterable[Path], scratch: Path, suffix: str = NOTEBOOK) -> HandIns:
    """Find what was handed in, in files, folders and zips.

    Args:
        paths: what was named on the command line.
        scratch: a folder for what is unpacked.
        suffix: of the files that are wanted.

    Raises:
        CourseError: a path does not exist, or nothing at all is in it.
    """
    found: list[HandIn] = []
    ignored = 0
    for path in paths:
        if not path.exists() and not path.is_symlink():
            raise CourseError(f"{path}: there is no such file.")
        listing = files_of(path, suffix, scratch)
        own = _of_listing(path, listing)
        ignored += listing.ignored + len(listing.files) - len(own)
        if not own:
            raise CourseError(f"There is not a notebook in {'the folder ' if path.is_dir() else ''}{path}.")
        found += own
    return _sorted_out(_with_unique_names(found), ignored)


def _of_listing(path: Path, listing: Listing) -> list[HandIn]:
    """Whose each file of a folder or zip is; pages and solutions of the course are left out."""
    files = [found for found in listing.files if not _is_of_the_course(found.parts)]
    shared = _shared_folders(files)
    is_ilias = _has_folders_of_ilias(files, len(shared))
    hand_ins = []
    for found in files:
        named = portal_name(found.parts, is_ilias)
        learner = _of_portal(named) if named else Learner(_name_from(path, found, len(shared)))
        hand_ins.append(_hand_in(path, found, learner, named, shared))
    return hand_ins


def _is_of_the_course(parts: tuple[str, ...]) -> bool:
    """Whether a file is a page or a solution of the course, as in the whole folder that somebody zipped."""
    stem = without_repetition(parts[-1]).removesuffix(NOTEBOOK)
    in_folder = parts[-2] if len(parts) > 1 else ""
    return stem in _PAGES and in_folder in ("solutions", "notebooks")


def _shared_folders(files: Sequence[FoundFile]) -> tuple[str, ...]:
    """The folders that all files lie in, if what follows are several folders: those of learners."""
    if not files:
        return ()
    folders = [found.parts if found.rejection is Rejection.EMPTY_FOLDER else found.parts[:-1] for found in files]
    shared = tuple(os.path.commonprefix(folders))
    following = {folder[len(shared)] for folder in folders if len(folder) > len(shared)}
    return shared if len(following) > 1 and not following & _OF_THE_COURSE else ()


def _has_folders_of_ilias(files: Sequence[FoundFile], depth: int) -> bool:
    depths = {len(found.parts) - 1 for found in files if len(found.parts) > 1}
    return any(
        looks_like_ilias({found.parts[level] for found in files if len(found.parts) > level + 1})
        for level in {depth, *(deep - 1 for deep in depths)}
    )


def _of_portal(named: PortalName) -> Learner:
    return Learner(named.name, named.id, named.login, named.portal)


def _name_from(path: Path, found: FoundFile, depth: int) -> str:
    """A learner's name from folders, else from the file's name, else from the folder or zip that was named."""
    folders = list(found.parts[depth:] if found.rejection is Rejection.EMPTY_FOLDER else found.parts[depth:-1])
    names = [PurePath(folder).stem if folder.casefold().endswith(".zip") else folder for folder in folders]
    if own := [name for name in names if name.casefold() not in _OF_THE_COURSE]:
        return own[0]
    if own_part := _beside_the_lesson(found.parts[-1]):
        return own_part
    above = Path(os.path.abspath(path))
    if not path.is_dir():
        above = above.with_suffix("") if len(found.parts) > 1 or _names_a_zip(path) else above.parent
    while above.name.casefold() in _OF_THE_COURSE:
        above = above.parent
    return above.name or "somebody"


def _names_a_zip(path: Path) -> bool:
    return path.suffix.casefold() == ".zip"


def _beside_the_lesson(file: str) -> str:
    """What a file's name holds besides common words: ada of `04_messages_ada.ipynb`, "" of `04_messages.ipynb`."""
    stem = PurePath(without_repetition(file)).stem
    for common in (*(lesson.stem for lesson in LESSONS), "progress"):
        stem = re.sub(re.escape(common), "", stem, flags=re.IGNORECASE)
    return stem.strip(" _-.")


def _hand_in(
    path: Path, found: FoundFile, learner: Learner, named: PortalName | None, shared: tuple[str, ...]
) -> HandIn:
    own_name = named.file if named and named.file else found.parts[-1]
    by_date = found.modified if named is None else None  # a platform's zips hold the time of the download
    handed_in = named.handed_in if named else by_date
    attempt = (named.number if named else 0, handed_in or found.modified or 0.0, repetition(own_name))
    return HandIn(
        learner,
        _shown_name(path, found, shared),
        found.file and Path(os.path.abspath(found.file)),
        without_repetition(own_name),
        named.late if named else None,
        handed_in,
        attempt,
        found.rejection,
    )


def _shown_name(path: Path, found: FoundFile, shared: tuple[str, ...]) -> str:
    """The path from the learner's folder on, whether a folder, a zip or the file itself was named."""
    parts = [part for part in found.parts[len(shared) :] if part not in (".", "..")] or list(found.parts[-1:])
    if len(parts) == 1 and not _beside_the_lesson(parts[0]):
        above = Path(os.path.abspath(path))
        parts = [above.name if path.is_dir() else above.stem if _names_a_zip(path) else above.parent.name, *parts]
    return printable_name("/".join(parts))


def printable_name(name: str) -> str:
    """A name whose letters can all be shown."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _with_unique_names(hand_ins: Iterable[HandIn]) -> list[HandIn]:
    """Each file once, and no name twice."""
    files: dict[Path, HandIn] = {}
    named: dict[str, HandIn] = {}
    for found in hand_ins:
        if found.file is not None and files.setdefault(found.file, found) is not found:
            continue
        name = found.name
        while name in named:
            name = f"{len(named)} {name}"
        named[name] = replace(found, name=name)
    return list(named.values())


def _sorted_out(found: Sequence[HandIn], ignored: int) -> HandIns:
    newest: dict[tuple[tuple[str, str], str], HandIn] = {}
    replaced = []
    for file in sorted((file for file in found if not file.rejection), key=lambda file: file.attempt):
        key = (file.learner.key, file.own_name)
        if key in newest:
            replaced.append((newest[key], file))
        newest[key] = file
    has_notebook = {file.learner.key for file in newest.values()}
    rejected = [file for file in found if file.rejection]
    return HandIns(
        tuple(sorted(newest.values(), key=lambda file: file.name)),
        tuple(file for file in rejected if file.learner.key not in has_notebook),
        tuple(file for file in rejected if file.learner.key in has_notebook),
        tuple(replaced),
        ignored,
    )

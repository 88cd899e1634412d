"""How learning platforms call the files that they hand over: whose a file is, whether it was late, and its own name.

Sources:
    Moodle: mod/assign/locallib.php, `download_submissions` (since 4.5 mod/assign/classes/downloader.php,
        `load_submissionplugin_filelist`): `NAME_ID_assignsubmission_file/FILE`, in older versions with an underscore
        before the slash, and `NAME_ID_assignsubmission_file_FILE` without folders. ID is the number that follows
        *Participant* in the grading worksheet. If names are hidden, NAME is *Participant*. A group's name and a hyphen
        may come before it.
    Canvas: lib/content_zipper.rb, `get_filename` and `add_upload_submission`: `NAME_USER_ATTACHMENT_FILE`, with `_LATE`
        after the name; NAME is the sortable name in lower case, and only its letters. An anonymous name is
        `anon_ID_ATTACHMENT_FILE`, late as `LATE_anon_…`. A newer attempt has a larger number, and often `-1` at the end
        of its name.
    ILIAS: components/ILIAS/Exercise, `getDirectoryNameFromUserData` and `copySubmissionFilesToDir`:
        `LASTNAME_FIRSTNAME_LOGIN_USER/FILE`, a late file as `Late Submission - FILE` in the language of the platform;
        older versions put fourteen digits, the time of handing in, and an underscore before the name.
"""

import contextlib
import re
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath


class Portal(StrEnum):
    """A learning platform."""

    MOODLE = "moodle"
    CANVAS = "canvas"
    ILIAS = "ilias"


TITLES = {Portal.MOODLE: "Moodle", Portal.CANVAS: "Canvas", Portal.ILIAS: "ILIAS"}
"""How each writes itself."""
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)", re.DOTALL)
_CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>\d+)_(?P<number>\d{3,})_(?P<file>.+\.[^_]+)", re.DOTALL | re.IGNORECASE
)
_CANVAS_HIDDEN = re.compile(
    r"(?P<late>LATE_)?(?P<name>anon_(?P<id>[^_]+))_(?P<number>\d{3,})_(?P<file>.+\.[^_]+)", re.DOTALL | re.IGNORECASE
)
_ILIAS = re.compile(r"(?P<last>[^_]+)_(?P<first>.+)_(?P<login>[^_\s]+)_(?P<id>\d{2,})", re.DOTALL)
_ILIAS_LATE = re.compile(r"(?:Late Submission|Versp(?:ä|ae|a)tete Abgabe) - (?P<file>.+)", re.DOTALL)
_ILIAS_TIME = re.compile(r"(?P<time>(?:19|20)\d{12})_(?P<file>.+)", re.DOTALL)
_REPEATED = re.compile(r"(?:-\d+| ?\(\d+\)|-Copy\d*|[ _-]copy(?: ?\d+)?| - Kopie(?: \(\d+\))?)$", re.IGNORECASE)
"""What browsers, JupyterLab and platforms add to a name that exists already."""

_SAVED_AS = re.compile(r"\.ipynb\.(?:txt|json)$", re.IGNORECASE)
"""What some browsers make of a notebook's ending."""


@dataclass(frozen=True)
class PortalName:
    """What a platform's file name says.

    Attributes:
        portal: which platform.
        name: the learner's, as far as it is known.
        id, login: the learner's on the platform; "" if the name holds none.
        file: what the learner called the file; "" if the name is a folder's.
        late: whether it is marked as late; None if this platform's names hold no such mark.
        handed_in: seconds since 1970, or None.
        number: grows from attempt to attempt; 0 if the name holds none.
    """

    portal: Portal
    name: str
    id: str = ""
    login: str = ""
    file: str = ""
    late: bool | None = None
    handed_in: float | None = None
    number: int = 0


def portal_name(parts: tuple[str, ...], is_ilias: bool) -> PortalName | None:
    """What the path of a file says, or None if no platform calls files so.

    Args:
        parts: folders and the name of a file.
        is_ilias: whether folders are read as those of ILIAS, whose names have no mark of their own.
    """
    for number, part in enumerate(parts):
        file = parts[-1] if number < len(parts) - 1 else ""
        if found := _MOODLE.fullmatch(part):
            name = " ".join(found["name"].replace("_", " ").split())
            name = f"{name} {found['id']}" if name == "Participant" else name
            return PortalName(Portal.MOODLE, name, found["id"], file=file or found["file"])
        if found := _CANVAS_HIDDEN.fullmatch(part) or _CANVAS.fullmatch(part):
            name, own = found["name"].replace("_", " "), file or found["file"]
            late, attempt = bool(found["late"]), int(found["number"])
            return PortalName(Portal.CANVAS, name, found["id"], "", own, late, number=attempt)
        if is_ilias and file and (found := _ILIAS.fullmatch(part)):
            return _of_ilias(found, file)
    return None


def looks_like_ilias(folders: set[str]) -> bool:
    """Whether folders beside each other are called as ILIAS does it: all of them are."""
    return bool(folders) and all(_ILIAS.fullmatch(folder) for folder in folders)


def _of_ilias(folder: re.Match[str], file: str) -> PortalName:
    name = f"{folder['first'].replace('_', ' ')} {folder['last']}"
    late = handed_in = None
    if found := _ILIAS_LATE.fullmatch(file):
        late, file = True, found["file"]
    if found := _ILIAS_TIME.fullmatch(file):
        with contextlib.suppress(ValueError, OverflowError):
            handed_in, file = time.mktime(time.strptime(found["time"], "%Y%m%d%H%M%S")), found["file"]
    return PortalName(Portal.ILIAS, name, folder["id"], folder["login"], file, late, handed_in)


def without_repetition(file: str) -> str:
    """The name of a file without what was added because there was one of that name: `04_messages (1).ipynb`."""
    path = PurePath(_SAVED_AS.sub(".ipynb", file))
    return _REPEATED.sub("", path.stem) + path.suffix.casefold()


def repetition(file: str) -> int:
    """The number in what was added: 2 for `04_messages (2).ipynb`, 0 for a name as the learner wrote it."""
    added = _REPEATED.search(PurePath(_SAVED_AS.sub(".ipynb", file)).stem)
    digits = re.search(r"\d+", added[0]) if added else None
    return int(digits[0]) if digits else int(bool(added))

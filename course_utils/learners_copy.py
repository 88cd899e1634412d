"""Brings a learner's own copy of a release up to date, and never loses what the learner wrote.

`make lab` does this where the course belongs to somebody else. The app for Open OnDemand calls `python -m
course_utils.learners_copy RELEASE COPY [--branch NAME] [--without src …]`, which prints a line, then the files.
What was delivered is kept by its hash in COPY/.course/delivered.json; so an edited file is known from an untouched one:

- new at the site, or missing in the copy: it arrives;
- changed by the site alone: the new version takes its place;
- changed by the learner: it stays. Where the site has changed it too, the site's version is put into `new_versions/`;
- made by the learner under a name that the site uses now: it is renamed, with the date, and the site's arrives;
- no longer at the site: it stays.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_utils import file_lock
from course_utils.errors import CourseError
from course_utils.settings import COPY

FOLDERS = ("notebooks", "exercises", "docs")
CONTENTS = "README.md"  # every notebook links to its list of lessons
NEW_VERSIONS = "new_versions"
NEWS = "UPDATES.md"


@dataclass
class News:
    """What an update did, by path inside the copy.

    Attributes:
        arrived, renewed: the site's files, new or in a new version.
        kept: edited by the learner, while the site has a new version.
        renamed: the learner's own files that were in the way, with their new names.
        gone: no longer at the site.
    """

    arrived: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def line(self) -> str:
        """For the portal's page: letters, digits, full stops and commas."""
        said = [
            _counted(self.arrived, "new file", ""),
            _counted(self.renewed, "file", " in a new version"),
            _counted(self.kept, "file", f" edited by you and left alone, new versions in {NEW_VERSIONS}"),
            _counted(self.renamed, "file", " of yours renamed"),
            _counted(self.gone, "file", " no longer in the course, yours left alone"),
        ]
        happened = ", ".join(filter(None, said))
        return f"{happened}. See {NEWS}" if happened else "nothing new"

    def page(self) -> str:
        """The files, for UPDATES.md; empty where nothing happened."""
        parts = [
            ("Arrived", self.arrived),
            ("In a new version; you had not edited them", self.renewed),
            (f"Edited by you, and left alone. The site's new version is in `{NEW_VERSIONS}/`", self.kept),
            ("Your own file was in the way and has a new name", self.renamed),
            ("No longer in the course; your copy stays", self.gone),
        ]
        return "\n".join(f"{title}:\n\n{_listed(paths)}\n" for title, paths in parts if paths)


def _listed(paths: list[str]) -> str:
    return "\n".join(f"- {path}" for path in paths)


def _counted(paths: list[str], what: str, more: str) -> str:
    return f"{len(paths)} {what}{'s' if len(paths) > 1 else ''}{more}" if paths else ""


def update(release: Path, copy: Path, without: tuple[str, ...] = ("src",)) -> News:
    """Bring a copy up to date with a release's folder.

    Raises:
        CourseError: the release has no notebooks, or the folder can be no copy.
        OSError: something cannot be read or written; what was done until then is complete and remembered.
    """
    offered = files_of(release, without)
    if not offered:
        raise CourseError(f"{release} has no notebooks.")
    if why := unfit(copy):
        raise CourseError(f"{copy} {why}. Choose a different folder for your copy of {release}.")
    news = News()
    with only_one(copy):
        memory = copy / ".course" / "delivered.json"
        delivered = remembered(memory)
        try:
            for path, source in offered.items():
                deliver(path, source, copy, delivered, news)
            own = {path for path in delivered if not path.startswith(f"{NEW_VERSIONS}/")}
            news.gone = sorted(own - set(offered))
            for path in news.gone:
                del delivered[path]
        finally:
            write_whole(memory, json.dumps(delivered, indent=1).encode())
        if page := news.page():
            before = (copy / NEWS).read_text() if (copy / NEWS).exists() else ""
            write_whole(copy / NEWS, f"# {time.strftime('%d %B %Y, %H:%M')}\n\n{page}\n{before}".encode())
    return news


def unfit(copy: Path) -> str:
    """Why a folder can be no copy, as in "is a file"; "" where it can be one."""
    if not copy.is_absolute():
        return "is a relative path, which could mean any folder"
    if copy.is_symlink() and not copy.exists():
        return f"is a link to {copy.readlink()}, which isn't there"
    if (copy / "course_utils").is_dir():
        return "is a clone of the course"
    home = os.environ.get("HOME")
    return "is your home directory" if home and copy.exists() and copy.samefile(home) else ""


def remembered(memory: Path) -> dict[str, str]:
    """Path inside the course → hash of what was delivered. If the file is damaged, no file is taken for untouched."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        found = json.loads(memory.read_text())
        if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
            return found
    return {}


def files_of(release: Path, without: tuple[str, ...]) -> dict[str, Path]:
    """Path inside the course → file, for all that a learner gets."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((release / folder).rglob("*")):
            parts = file.relative_to(release).parts
            hidden = any(part.startswith((".", "__")) or part in without for part in parts)
            if not hidden and file.is_file():
                found["/".join(parts)] = file
    if found and (release / CONTENTS).is_file():
        found[CONTENTS] = release / CONTENTS
    return found


def deliver(path: str, source: Path, copy: Path, delivered: dict[str, str], news: News) -> None:
    """Bring one file to the copy, by the rules above."""
    content, target = source.read_bytes(), copy / path
    new, old = hash_of(content), delivered.get(path)
    if not target.exists():
        write_whole(target, content)
        news.arrived.append(path)
    elif (present := hash_of(target.read_bytes()) if target.is_file() else "") == new:
        pass
    elif old is None:
        put_aside(target, path, news)
        write_whole(target, content)
    elif present == old:
        write_whole(target, content)
        news.renewed.append(path)
    elif new != old:
        beside, name = copy / NEW_VERSIONS / path, f"{NEW_VERSIONS}/{path}"
        if beside.exists() and hash_of(beside.read_bytes()) != delivered.get(name):
            put_aside(beside, name, news)
        write_whole(beside, content)
        delivered[name] = new
        news.kept.append(path)
    delivered[path] = new


def put_aside(file: Path, path: str, news: News) -> None:
    """Give a file of the learner's, which is in the way, a name with the date."""
    aside = file.with_name(f"{file.stem}_{time.strftime('%Y-%m-%d_%H%M%S')}{file.suffix}")
    file.rename(aside)
    news.renamed.append(f"{path} → {aside.name}")


def hash_of(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all, also where the quota is used up."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as output:
            output.write(content)
        Path(scratch).replace(file)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def only_one(copy: Path) -> Iterator[None]:
    """Two sessions of a learner may start at once: the second waits."""
    (copy / ".course").mkdir(parents=True, exist_ok=True)
    with (copy / ".course" / "lock").open("w") as lock:
        with contextlib.suppress(CourseError):  # some file systems have no locks
            file_lock.hold(lock, COPY.name)
        yield


@contextlib.contextmanager
def release_folder(release: str, branch: str) -> Iterator[Path]:
    """The release's folder; of a git repository a fresh checkout of the branch, for as long as it is needed."""
    if not branch:
        yield Path(release)
        return
    scratch = Path(tempfile.mkdtemp(prefix="release-"))
    try:
        # git rejects a repository on disk that belongs to somebody else; this one is the site's, and meant.
        (scratch / "gitconfig").write_text("[include]\n\tpath = ~/.gitconfig\n[safe]\n\tdirectory = *\n")
        environment = os.environ | {"GIT_CONFIG_GLOBAL": str(scratch / "gitconfig"), "GIT_TERMINAL_PROMPT": "0"}
        command = ["git", "clone", "--quiet", "--depth=1", f"--branch={branch}", "--", release, str(scratch / "course")]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300, env=environment)
        yield scratch / "course"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """Update, and say what happened; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.learners_copy", description="Brings a learner's copy of the course up to date."
    )
    parser.add_argument("release")
    parser.add_argument("copy", type=Path)
    parser.add_argument("--branch", default="", help="of the repository `release`; without, `release` is a folder")
    parser.add_argument("--without", nargs="*", default=["src"], help="names of folders that learners do not get")
    options = parser.parse_args(arguments)
    try:
        with release_folder(options.release, options.branch) as release:
            news = update(release, options.copy, tuple(options.without))
    except (CourseError, OSError, ValueError, subprocess.SubprocessError) as error:
        print("not brought up to date, its files are as they were. The log of the session says why")
        print(f"The copy {options.copy} could not be brought up to date: {error}", file=sys.stderr)
        return 0
    print(f"{news.line()}\n{news.page()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run pip or uv, and show how far it has come: `python tools/installer_progress.py pip install …`.

The larger files are named with their sizes. In a terminal a line below them shows how far the installer is; elsewhere,
such as in a log, a line is written when nothing else was for a while. What else the installer says goes to the standard
output, without its lines for each package, and its exit status is this program's.

The bars of pip and uv draw nothing into a pipe. What has arrived of a file is therefore read off the folder in which
pip keeps it for the time.
"""

import glob
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SILENCE = float(os.environ.get("SET_UP_SILENCE", "20"))
"""Seconds after which a log gets a line that says how far it is."""
LARGE = 1_000_000
UNITS = {"B": 1, "bytes": 1, "kB": 1e3, "KiB": 2**10, "MB": 1e6, "MiB": 2**20, "GB": 1e9, "GiB": 2**30}
BAR = 30

OF_PIP = re.compile(r"\s*(?P<verb>Downloading|Using cached) (?P<file>\S+)(?: \((?P<size>[\d.]+) ?(?P<unit>\w+)\))?$")
OF_UV = re.compile(r"\s*Downloading (?P<name>\S+) \((?P<size>[\d.]+)(?P<unit>\w+)\)$")
UV_HAS_IT = re.compile(r"\s*Downloaded (?P<name>\S+)$")
FROM_DISK = re.compile(r"\s*Processing (?P<file>/.*\.(?:whl|tar\.gz))(?: \(.*\))?$")
BUILDS = re.compile(
    r"\s*(?:Building (?:editable|wheel) for (?P<name>\S+)|Building (?P<by_uv>[^ ]+)$|Preparing |Installing build dep)"
)
UNPACKS = re.compile(r"(?:Installing collected packages: (?P<names>.*)|Prepared (?P<count>\d+) packages? .*)$")
COLLECTS = re.compile(r"Collecting (?P<name>[\w.-]+)")
RESOLVED = re.compile(r"Resolved (?P<count>\d+) packages? ")
OF_EACH_PACKAGE = re.compile(
    r"\s*(?:Requirement already satisfied|File was already|Obtaining dependency|Saved |Getting requirements"
    r"|Checking if build|Created wheel|Stored in directory|Using Python|Audited"
    r"|Successfully|Link requires|Ignoring \S+: markers|Attempting uninstall|Found existing|Uninstalling|Installed \d"
    r"|Running command|Looking in (?:indexes|links)|Building wheels for|Built |[+~-] \S+==)"
)


def in_words(size: float) -> str:
    """A number of bytes for people: "184.5 MB"."""
    if size < 1e9:
        return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.1f} GB"


def name_of(file: str) -> str:
    """The package of a file or an address, with its version where that names a build: "torch 2.13.0+cpu"."""
    base = file.rstrip("/").rpartition("/")[2].replace("%2B", "+")
    name, _, rest = base.partition("-")
    version = rest.partition("-")[0]
    return f"{name} {version}" if "+" in version else name


@dataclass
class Progress:
    """How far an installer is, as far as what it has said so far tells."""

    wanted: int = 0
    """Packages that were asked for; 0 if nobody knows."""
    folder: str = ""
    """The folder from which they were asked for, if one was named."""
    here: int = 0
    """Packages whose files are here."""
    file: str = ""
    """The file that pip is fetching, and its size in bytes."""
    size: float = 0
    waiting: dict[str, float] = field(default_factory=dict)
    """Files that uv is fetching, with their sizes."""
    fetched: float = 0
    """Bytes of all files that came from elsewhere."""
    collected: str = ""
    building: str = ""
    unpacking: int = 0
    """Packages that are now unpacked."""

    def read(self, line: str) -> str | None:
        """Take in a line. Return what people should see of it, "" for nothing, None if it says nothing of progress."""
        if found := OF_UV.match(line):
            size = float(found["size"]) * UNITS.get(found["unit"], 1)
            self.waiting[found["name"]] = size
            return self._names(found["name"], size)
        if found := UV_HAS_IT.match(line):
            self.fetched += self.waiting.pop(found["name"], 0)
            return ""
        if found := OF_PIP.match(line):
            if found["file"].endswith(".metadata"):
                return ""
            self.here += 1
            self.building = ""
            size = float(found["size"]) * UNITS.get(found["unit"], 1) if found["size"] else 0
            if found["verb"] == "Using cached":
                self.file = ""
                return ""
            self.file, self.size = found["file"].rpartition("/")[2].replace("%2B", "+"), size
            self.fetched += size
            return self._names(name_of(found["file"]), size, server(found["file"]))
        if found := FROM_DISK.match(line):
            self.here += 1
            self.file = ""
            size = os.path.getsize(found["file"]) if os.path.exists(found["file"]) else 0
            folder = os.path.dirname(found["file"])
            return self._names(name_of(found["file"]), size, folder if folder != self.folder else "")
        if found := UNPACKS.match(line):
            self.file, self.building = "", ""
            self.unpacking = int(found["count"] or 0) or len(found["names"].split(","))
            if self.unpacking == 1 and self.fetched < LARGE:
                return ""
            packages = f"{self.unpacking} package{'s' * (self.unpacking != 1)}"
            return f"    {f'{in_words(self.fetched)} downloaded. ' if self.fetched else ''}Unpacking {packages}."
        if found := BUILDS.match(line):
            self.file, self.building = (
                "",
                found["name"] or found["by_uv"] or self.collected or "what is needed for that",
            )
            return ""
        if found := RESOLVED.match(line):
            self.wanted = int(found["count"])
            return ""
        if line.lstrip().startswith(("Requirement already satisfied", "File was already downloaded")):
            self.here += 1
        if found := COLLECTS.match(line):
            self.collected, self.building = found["name"], ""
            return ""
        return "" if OF_EACH_PACKAGE.match(line) or not line.strip() else None

    def _names(self, name: str, size: float, source: str = "") -> str:
        return f"    {name}, {in_words(size)}{f', from {source}' if source else ''}" if size >= LARGE else ""

    def state(self, arrived: float, unpacked: int) -> tuple[float | None, str]:
        """How much of what goes on now is done, from 0 to 1 or None, and what that is."""
        if self.unpacking:
            done = min(max(unpacked - 1, 0), self.unpacking)  # a package's folder is there before all its files are
            return done / self.unpacking, f"unpacking, {done} of {self.unpacking}"
        if self.building:
            return None, f"building {self.building}"
        packages = f"{self.here} packages"
        if self.wanted:
            packages = f"{min(self.here, self.wanted)} of {self.wanted} packages"
        if self.waiting:
            whole = self.fetched + sum(self.waiting.values())
            return self.fetched / whole, f"{in_words(self.fetched)} of {in_words(whole)}, waiting for " + ", ".join(
                sorted(self.waiting, key=self.waiting.get, reverse=True)[:3]
            )
        if self.file and self.size >= LARGE and arrived < self.size:
            return arrived / self.size, f"{name_of(self.file)}, {packages}"
        return (self.here / self.wanted if self.wanted else None), packages


def server(address: str) -> str:
    """The machine from which a file comes, or the folder, unless it is PyPI's."""
    found = re.match(r"(?:https?://(?:[^/@]*@)?([^/]+)|file://(/.*)/[^/]*$)", address)
    return (found[1] or found[2]) if found and found[1] != "files.pythonhosted.org" else ""


def size_in(folder: Path, file: str) -> float:
    """How many bytes of a file have arrived in one of pip's own folders below this one."""
    sizes = [path.stat().st_size for path in folder.glob(f"pip-unpack-*/{glob.escape(file)}*") if path.is_file()]
    return max(sizes, default=0)


def installed() -> int:
    """How many packages are in .venv."""
    return sum(1 for _ in Path(".venv").glob("lib/python3*/site-packages/*.dist-info"))


def requirements(command: list[str]) -> int:
    """How many packages the requirement files of a command ask for."""
    files = [command[at + 1] for at, word in enumerate(command[:-1]) if word == "-r"]
    return sum(len(re.findall(r"^\w.*==", Path(file).read_text(), flags=re.MULTILINE)) for file in files)


@dataclass
class Screen:
    """Where it is shown: a terminal with a line that changes, or a log."""

    terminal: bool
    written: float = field(default_factory=time.monotonic)
    begun: float = field(default_factory=time.monotonic)

    def line(self, text: str) -> None:
        """A line that stays."""
        sys.stderr.write(f"\r\033[K{text}\n" if self.terminal else f"{text}\n")
        sys.stderr.flush()
        self.written = time.monotonic()

    def show(self, done: float | None, what: str) -> None:
        """How far it is: at once in a terminal, now and then in a log."""
        percent = "" if done is None else f"{100 * done:3.0f}%, "
        seconds = time.monotonic() - self.begun
        if self.terminal:
            full = 0 if done is None else round(BAR * min(done, 1))
            width = shutil.get_terminal_size().columns - 1
            text = f"    [{'#' * full:{BAR}}] {percent}{what}, {seconds:.0f} s"
            sys.stderr.write(f"\r\033[K{text[:width]}")
            sys.stderr.flush()
        elif time.monotonic() - self.written >= SILENCE:
            self.line(f"    {percent.lstrip()}{what}, after {seconds:.0f} s")

    def clear(self) -> None:
        """Leave nothing of the line that changes."""
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def lines(stream, every: float) -> Iterator[str | None]:
    """The lines of a stream as they come, and None when there was none for so many seconds."""
    selector = selectors.DefaultSelector()
    selector.register(stream, selectors.EVENT_READ)
    rest = b""
    while True:
        if not selector.select(every):
            yield None
            continue
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            break
        *whole, rest = (rest + piece).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")


def run(command: list[str]) -> int:
    """Run it, show how far it is, and return its exit status."""
    folders = [command[at + 1] for at, word in enumerate(command[:-1]) if word == "--find-links"]
    progress = Progress(wanted=requirements(command), folder=folders[0] if folders else "")
    screen = Screen(terminal=sys.stderr.isatty())
    with tempfile.TemporaryDirectory(prefix="course-set-up-") as folder:
        environment = {**os.environ, "TMPDIR": folder, "PYTHONUNBUFFERED": "1"}
        pipe = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        before = installed()
        with subprocess.Popen(command, env=environment, **pipe) as process:
            signal.signal(signal.SIGTERM, lambda *_: process.terminate())
            try:
                follow(lines(process.stdout, 0.5), progress, screen, Path(folder), before)
            except KeyboardInterrupt:
                process.wait()
                return 130
            finally:
                screen.clear()
        return process.returncode


def follow(read: Iterable[str | None], progress: Progress, screen: Screen, folder: Path, before: int) -> None:
    """Show what the installer's lines tell, until there are no more."""
    most = 0.0
    for line in read:
        shown = "" if line is None else progress.read(line)
        if shown is None:
            print(line, flush=True)
        elif shown:
            screen.line(shown)
        arrived = size_in(folder, progress.file) if progress.file else 0
        if progress.file and not arrived and most:
            progress.file = ""  # it has been moved to where it belongs
        most = arrived
        screen.show(*progress.state(arrived, installed() - before if progress.unpacking else 0))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

"""One installation for all: a release that belongs to root, used by an ordinary user through a link, without a network.

The releases are copies of this course in a mount namespace of their own, in which `.venv` appears at each of them as if
it had been set up there. The user is a real one, with a number of its own; the only network is the loopback.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from course_utils.syllabus import ROOT

LEARNER = 4711
OLD, NEW = "2026-11", "2027-05"
FIRST, MESSAGES = "notebooks/00_first_steps.ipynb", "notebooks/04_messages.ipynb"
NOT_COPIED = (".git", ".venv", ".ci", "build", "data", "__pycache__", ".*_cache", "*.egg-info", "workspaces")
INSIDE = """
mount --make-rprivate /
ip link set lo up
{open_python}
{mounts}
echo ready
exec sleep infinity
"""
OPEN_PYTHON = """
# Python lies below a folder that only its owner may enter: the namespace has it below one that is open.
mkdir {site}/python && mount --bind {python} {site}/python
mount -t tmpfs -o mode=755 python {closed}
mkdir -p {python} && mount --move {site}/python {python}
"""
RUN = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""


@dataclass
class Site:
    """A centre: its releases, the link that names one of them, and the namespace in which all this is to be seen."""

    folder: Path
    inside: int
    """The process that keeps the namespace."""

    learner: dict[str, str] = field(default_factory=dict)
    """The environment of the learner's shell."""

    @property
    def home(self) -> Path:
        return Path(self.learner["HOME"])

    def command(self, *words: str) -> list[str]:
        """What runs a command as the learner: no privileges, nothing of this process's environment."""
        who = ["setpriv", f"--reuid={LEARNER}", f"--regid={LEARNER}", "--clear-groups", "--inh-caps=-all"]
        own = [f"{name}={value}" for name, value in self.learner.items()]
        return ["nsenter", f"--target={self.inside}", "--mount", "--net", *who, "env", "-i", *own, *words]

    def run(self, *words: str, folder: Path | None = None) -> str:
        """What a command of the learner's prints; it must succeed."""
        command = self.command("env", f"--chdir={folder or self.home}", *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def closed_folder(path: str) -> Path | None:
    """The highest folder of a path that only its owner may enter."""
    above = (folder for folder in reversed(Path(path).parents) if not folder.stat().st_mode & 0o001)
    return next(above, None)


def release_mounts(release: Path) -> str:
    """Shell lines after which the environment of this course is that of a release."""
    release.joinpath(".venv").mkdir()
    lines = [f"mount --bind {ROOT}/.venv {release}/.venv"]
    packages = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages")
    paths = [*packages.glob("__editable__*"), ROOT / ".venv" / "made-for"]
    for number, file in enumerate(paths):
        own = release / f".mounted-{number}"
        own.write_text(file.read_text().replace(str(ROOT), str(release)))
        lines.append(f"mount --bind {own} {release}/.venv/{file.relative_to(ROOT / '.venv')}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Two releases, and the link to the older one."""
    there = os.geteuid() == 0 and all(map(shutil.which, ("nsenter", "unshare", "setpriv", "ip")))
    trial = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True) if there else None
    if trial is None or trial.returncode:
        assert os.environ.get("CI") != "true", "under CI=true this must run as root, with unshare, nsenter, setpriv, ip"
        pytest.skip("this needs root, unshare, nsenter, setpriv and ip")
    folder = Path(tempfile.mkdtemp(prefix="course-site-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in (OLD, NEW):
        shutil.copytree(ROOT, folder / name, ignore=shutil.ignore_patterns(*NOT_COPIED))
    with (folder / NEW / MESSAGES).open("a") as file:
        file.write("\n")  # a new version
    (folder / "current").symlink_to(OLD)
    home = folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, LEARNER, LEARNER)
    mounts = "\n".join(release_mounts(folder / name) for name in (OLD, NEW))
    subprocess.run(["chmod", "-R", "go-w,a+rX", folder / OLD, folder / NEW], check=True)
    closed = closed_folder(sys.base_prefix)
    open_python = OPEN_PYTHON.format(site=folder, python=sys.base_prefix, closed=closed) if closed else ""
    script = INSIDE.format(open_python=open_python, mounts=mounts)
    holder = subprocess.Popen(
        ["unshare", "--mount", "--net", "sh", "-ec", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert (line := holder.stdout.readline()) == "ready\n", line + holder.stdout.read()
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        yield Site(folder, holder.pid, {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TMPDIR": str(home)})
    finally:
        end_all_of_the_learner()
        holder.kill()
        holder.wait()
        shutil.rmtree(folder)


def of_the_learner() -> list[psutil.Process]:
    """The learner's processes that have not ended."""
    found = [process for process in psutil.process_iter(["uids", "status"]) if process.info["uids"].real == LEARNER]
    return [process for process in found if process.info["status"] != psutil.STATUS_ZOMBIE]


def end_all_of_the_learner() -> None:
    for process in of_the_learner():
        process.kill()


def lab(site: Site, *options: str) -> tuple[subprocess.Popen, list[str]]:
    """`make lab` in the release that the link names, with what it said until it was ready."""
    command = site.command("make", "--no-print-directory", "-C", str(site.folder / "current"), "lab", *options)
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in server.stdout:
        lines.append(line.rstrip())
        if "Ctrl+C" in line:
            return server, lines
    raise AssertionError("\n".join(lines))


def start_kernel(site: Site, address: str) -> None:
    """What a learner does who opens a notebook in JupyterLab."""
    base, token = re.fullmatch(r"(http://[^/]+)/.*token=(\w+)", address).groups()
    request = f"Request('{base}/api/kernels?token={token}', method='POST', data=b'{{}}')"
    site.run(sys.executable, "-c", f"from urllib.request import Request, urlopen; urlopen({request})")


def kernels() -> list[str]:
    """The Pythons of the learner's kernels."""
    lines = [process.as_dict(["cmdline"])["cmdline"] or [""] for process in of_the_learner()]
    return [line[0] for line in lines if "ipykernel_launcher" in line]


@pytest.mark.long
def test_a_learner_works_in_a_copy_of_a_release_through_an_upgrade(site) -> None:
    copy = site.home / "course"
    server, lines = lab(site)
    assert re.fullmatch(rf"Your copy of the course is {copy}: \d+ new files\. See UPDATES\.md\.", lines[0]), lines
    assert len(lines) == 4, lines

    # Two lessons run from the copy, ranks and all, and the learner keeps the first as it is now.
    python = str(site.folder / "current" / ".venv" / "bin" / "python")
    for page in (FIRST, MESSAGES):
        site.run(python, "-c", RUN, Path(page).name, folder=copy / "notebooks")
    assert ' "outputs": [\n    {' in (copy / FIRST).read_text()
    site.run("cp", str(site.folder / OLD / MESSAGES), str(copy / MESSAGES))

    # The link moves while that JupyterLab runs: it stays with its release, and the next one has the new release.
    (site.folder / "next").symlink_to(NEW)
    (site.folder / "next").replace(site.folder / "current")
    (site.folder / NEW / FIRST).write_text((site.folder / NEW / FIRST).read_text() + "\n")
    start_kernel(site, lines[-2].strip())
    second, lines = lab(site)
    assert lines[0] == (
        f"Your copy of the course is {copy}: 1 file in a new version, 1 file edited by you and left alone, "
        "new versions in new_versions. See UPDATES.md."
    )
    start_kernel(site, next(line.strip() for line in lines if "http://" in line))
    deadline = time.monotonic() + 60
    while len(kernels()) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert sorted(kernels()) == [str(site.folder / name / ".venv" / "bin" / "python") for name in (OLD, NEW)]
    assert (copy / MESSAGES).read_text() == (site.folder / NEW / MESSAGES).read_text()
    assert (copy / "new_versions" / FIRST).read_text() == (site.folder / NEW / FIRST).read_text()

    for process in of_the_learner():
        if "course_utils.lab" in (process.as_dict(["cmdline"])["cmdline"] or []):
            process.send_signal(signal.SIGINT)
    assert server.wait(60) is not None and second.wait(60) is not None
    deadline = time.monotonic() + 60
    while of_the_learner() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not of_the_learner(), "nothing goes on after the last window"

    # What is left: nothing in the releases, and of the learner's what docs/install.md lists, beside Jupyter's own.
    changed = subprocess.run(["find", site.folder / OLD, site.folder / NEW, "-user", str(LEARNER)], capture_output=True)
    assert changed.stdout == b""
    left = {path.relative_to(site.home) for path in site.home.rglob("*") if path.is_file()}
    of_others = {".cache", ".ipython", ".jupyter", ".npm"}
    assert {path.parts[0] for path in left} - of_others == {"course", ".local"}
    assert {path.parts[2] for path in left if path.parts[0] == ".local"} <= {"course", "jupyter"}


def test_a_folder_that_only_its_owner_enters_is_found(tmp_path) -> None:
    (tmp_path / "closed" / "python").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    found = closed_folder(str(tmp_path / "closed" / "python" / "bin"))
    assert found is not None and found.stat().st_mode & 0o001 == 0

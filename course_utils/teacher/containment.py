"""Ranks for a stranger's code: processes with limits, without network, that see a read-only machine and no answers.

With namespaces (`unshare`; no root needed) the ranks have a process tree, a network (loopback alone) and mounts of
their own; every file system is read-only but for one folder, what `hiding` names is covered, and the right to undo
this is given up before MPI starts. Where the system forbids it, `obstacle` says so, and limits and guard remain.
"""

import contextlib
import functools
import json
import os
import select
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError, RanksGone
from course_utils.machine import threads_per_rank
from course_utils.ranks.connection import Connection, Watched
from course_utils.ranks.engine.reply import Raised, RankTask, Reply, to_bytes
from course_utils.ranks.processes.exit_status import SHELL, memory_kills
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.ranks.processes.process_control import LocalRanks
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder
from course_utils.ranks.ranks import Ranks
from course_utils.teacher import hiding
from course_utils.teacher.wire import HEADER, unpack_reply

LIMITS = {  # of each rank
    "RLIMIT_AS": 6 << 30,  # bytes of address space; torch alone maps 2 GB
    "RLIMIT_CPU": 240,  # seconds
    "RLIMIT_NPROC": 512,  # processes and threads; the kernel does not hold root to it
    "RLIMIT_FSIZE": 256 << 20,  # bytes of one file
    "RLIMIT_CORE": 0,
}
SECONDS = 600.0  # for one submission
START_SECONDS = 90.0
LARGEST_REPLY = 256 << 20
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "COURSE_MPIEXEC")
_KEPT_PREFIXES = ("OMPI_", "PRTE_", "PMIX_", "MPI", "I_MPI_", "UCX_", "FI_")
_UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
_UNSHARE += ["--mount-proc", "sh", "-e", "-c"]
_GIVE_UP = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def setup(own: Path, hidden: Sequence[Path]) -> str:
    """Shell lines that turn a fresh mount namespace into what a submission may see.

    Args:
        own: the one folder that stays writable.
        hidden: folders and files to cover.
    """
    folder, empty = shlex.quote(str(own)), shlex.quote(str(own / "empty"))
    lines = ["PATH=$PATH:/usr/sbin:/sbin", "mount --make-rprivate /", f"mount --bind {folder} {folder}"]
    for path in sorted(hidden, key=Path.is_dir):  # what covers a folder takes the files in it away
        quoted = shlex.quote(str(path))
        cover = f"-t tmpfs -o ro,size=4k none {quoted}" if path.is_dir() else f"--bind {empty} {quoted}"
        lines.append(f"mount {cover}")
    lines += [
        "while read -r _ _ _ _ place options _; do "
        f'case "$place" in {folder}|/proc*|/dev/shm) continue;; esac; '
        'mount -o "remount,bind,$options,ro" "$place" 2>/dev/null || true; done < /proc/self/mountinfo',
        "mount -t tmpfs -o mode=700,size=2g none /dev/shm",
        "if [ -w / ]; then echo 'the file system stayed writable' >&2; exit 1; fi",
        "ip link set lo up 2>/dev/null || true",
    ]
    return "\n".join(lines)


@functools.cache
def obstacle() -> str | None:
    """Why submissions cannot have namespaces here; None where they can."""
    if sys.platform != "linux" or not shutil.which("unshare") or not shutil.which("setpriv"):
        return "`unshare` and `setpriv` of util-linux are missing."
    probe = [*_UNSHARE, f"mount --make-rprivate /; mount -o remount,bind,ro /; exec {shlex.join(_GIVE_UP)} true"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=30, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or "no reason given").splitlines()[-1]


class ContainedConnection(Connection):
    """The line to contained ranks. What comes back is read as data, see `wire`."""

    def __init__(self, folder: RanksFolder, lines: list[tuple[socket.socket, int, int]], process, watch) -> None:
        """`lines` holds for each rank its socket, its process, and the shell's number where the rank lives."""
        _, self.pids, shells = (list(column) for column in zip(*lines, strict=True))
        super().__init__(folder, None, range(len(lines)), LocalRanks(folder, self.pids, shells))
        self._sockets = [line for line, _, _ in lines]
        self._process, self._watch = process, watch
        self._came = [bytearray() for _ in lines]
        self._number = 0
        self._counted = time.monotonic()
        self.deadline = float("inf")
        self.offences: list[str] = []

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Send each rank its task, bytes that this process has packed; or one in which they only meet."""
        if time.monotonic() > self.deadline:
            raise RanksGone(f"the submission took more than {SECONDS:.0f} s")
        if self.control.dead():
            raise RanksGone(self.control.how_it_ended())
        self._number += 1
        for rank, (payload,) in arguments.items():
            if function == "meet":
                payload = to_bytes(RankTask(to_bytes(bool), (), {}, len(arguments), payload))
            with contextlib.suppress(OSError):  # a dead rank is seen while waiting
                self._sockets[rank].sendall(HEADER.pack(self._number, len(payload)) + payload)
        return dict.fromkeys(arguments)

    def wait_for(self, pending: dict[int, Any], *, limit: float | None = None, **options: Any) -> Watched:
        """As for a notebook's ranks, and never beyond the submission's time."""
        left = max(self.deadline - time.monotonic(), 0.1)
        return super().wait_for(pending, limit=min(limit or left, left), **options)

    def _collect(self, call: Watched) -> bool:
        waiting = {self._sockets[rank]: rank for rank in call.pending}
        for line in select.select(list(waiting), [], [], 0.01)[0]:
            rank = waiting[line]
            with contextlib.suppress(OSError):
                self._came[rank] += line.recv(1 << 20)
            if (reply := self._reply(rank, call.lost)) is not None:
                del call.pending[rank]
                call.replies[rank] = reply
        self._count_processes()
        return bool(call.pending)

    def _reply(self, rank: int, lost: list[int]) -> Reply | None:
        """The rank's reply, once it is there; `lost` gets a rank whose line cannot be used again."""
        came = self._came[rank]
        while len(came) >= HEADER.size:
            number, size = HEADER.unpack_from(came)
            if size > LARGEST_REPLY:
                lost.append(rank)  # the rest of it still comes; new ranks start before the next call
                return Reply(rank, "raised", error=Raised("MemoryError", "its result is too large to send"))
            if len(came) < HEADER.size + size:
                return None
            data = bytes(came[HEADER.size : HEADER.size + size])
            del came[: HEADER.size + size]
            if number == self._number:
                reply, offences = unpack_reply(rank, data)
                self.offences += [f"rank {rank} {one}" for one in offences]
                return reply
        return None

    def _count_processes(self) -> None:
        """End the set where it has multiplied: the kernel does not hold root to its limit."""
        if time.monotonic() - self._counted < 0.5:
            return
        count = len(self.folder.processes())
        self._counted = time.monotonic()
        if count > 4 * len(self.pids) + 20:
            self.offences.append(f"the submission started {count} processes")
            self._process.kill()
            self.folder.end()

    def close(self) -> None:
        """End everything that the ranks have started: with namespaces the whole tree, else their process group."""
        for line in self._sockets:
            line.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self.folder.end()
        self._watch.wait()


@contextmanager
def contained_ranks(
    number: int, hidden: Sequence[Path] = (), deadline: float = float("inf"), since: str = ""
) -> Iterator[Ranks]:
    """Ranks that serve one submission; whatever they have started ends with them.

    Args:
        number: how many.
        hidden: files and folders that they must not read, beside the course's own answers.
        deadline: on the clock of `time.monotonic`; later tasks are refused.
        since: the submission's first lesson, by its stem: what lessons before it taught is in sight; "" hides it too.

    Raises:
        CourseError: they do not start.
    """
    offences: list[str] = []

    def launch() -> tuple[ContainedConnection, dict]:
        connection = _launch(number, [*hiding.hidden_folders(), *hiding.hidden_files(since), *hidden], since)
        connection.deadline, connection.offences = deadline, offences
        ranks = [{"rank": rank, "pid": pid} for rank, pid in enumerate(connection.pids)]
        return connection, {"ranks": ranks, "line": f"{number} contained ranks", "network": None}

    ranks = Ranks(*launch(), start_again=launch)
    try:
        yield ranks
    finally:
        ranks.stop()


def _launch(number: int, hidden: list[Path], since: str) -> ContainedConnection:
    folder = RanksFolder.new()
    folder.own()
    for name in ("home", "copies"):
        (folder.path / name).mkdir(mode=0o700)
    (folder.path / "empty").touch()
    hiding.write_copies(folder.path / "copies", since)
    limits = LIMITS if obstacle() is None else LIMITS | {"RLIMIT_NPROC": LIMITS["RLIMIT_NPROC"] * 8}  # the user's, all
    settings = {"limits": limits, "hidden": [str(path) for path in hidden]}
    (folder.path / "settings.json").write_text(json.dumps(settings))
    folder.write_facts(memory_kills=memory_kills())
    module = ["-m", "course_utils.teacher.contained_rank", str(folder.path)]
    command = [find_mpiexec(), "-n", str(number), "/bin/sh", "-c", SHELL, "rank", str(folder.path), sys.executable]
    command += module
    if obstacle() is None:
        inside = f"{setup(folder.path, hidden)}\nexec {shlex.join([*_GIVE_UP, *command])}"
        command = [*_UNSHARE, inside]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder.path / "line"))
        listener.listen(number)
        process = _start(command, folder, _environment(folder, number))
        watch = _start([sys.executable, "-m", "course_utils.ranks.processes.watchdog", str(folder.path)], folder, None)
        try:
            lines = _greet(listener, number, process, folder)
            if obstacle():  # MPI's segments then lie among those of others, and outlive ranks that are killed
                folder.write_facts(shared_memory=sorted(folder.shared_memory()))
        except BaseException:
            process.kill()
            folder.end()
            raise
    return ContainedConnection(folder, lines, process, watch)


def _environment(folder: RanksFolder, number: int) -> dict[str, str]:
    """Little of this process's own: what Python and MPI need, and nothing private."""
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
    home = str(folder.path / "home")
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads_per_rank(number))
    )
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, [kept.get("PYTHONPATH")])])
    return {
        "UCX_TLS": "posix,self",
        "UCX_LOG_LEVEL": "fatal",
        "GLOO_SOCKET_IFNAME": "lo",
        **kept,
        **threads,
        MARK: str(folder.path),
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "COURSE_RUNTIME": home,
        "COURSE_HOME": home,
        "HOME": home,
        "TMPDIR": home,
        "MPLBACKEND": "agg",
    }


def _start(command: list[str], folder: RanksFolder, environment: dict[str, str] | None) -> subprocess.Popen:
    """A process in a group of its own, whose folder is the submission's."""
    with (folder.path / "ranks.log").open("ab") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=0o077,
            cwd=folder.path / "home" if environment else None,
        )


def _greet(
    listener: socket.socket, number: int, process: subprocess.Popen, folder: RanksFolder
) -> list[tuple[socket.socket, int, int]]:
    """Wait until every rank has said which it is. The kernel says which process it is, as seen from here."""
    found: dict[int, tuple[socket.socket, int, int]] = {}
    deadline = time.monotonic() + START_SECONDS
    while len(found) < number:
        if time.monotonic() > deadline or process.poll() is not None:
            log = (folder.path / "ranks.log").read_text(errors="replace").splitlines()[-5:]
            raise CourseError("The contained ranks did not start. What they wrote:\n" + "\n".join(log))
        if not select.select([listener], [], [], 0.1)[0]:
            continue
        line, _ = listener.accept()
        line.settimeout(60.0)
        pid = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        hello = json.loads(line.makefile("r").readline())
        found[hello["rank"]] = (line, pid, hello["shell"])
    return [found[rank] for rank in range(number)]

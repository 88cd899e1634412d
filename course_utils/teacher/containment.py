"""Ranks for a stranger's code: processes with limits, in a box, that speak with the grader through one socket each.

Nothing that the grader relies on lies where they could reach it: how a rank ended, what it waits for and what it
answers come as bounded data (`wire`), and memory that both see (`activity`) has a size that nobody can change.
"""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError, RanksGone
from course_utils.machine import threads_per_rank
from course_utils.ranks.connection import Connection, Watched
from course_utils.ranks.engine.reply import Raised, RankTask, Reply, to_bytes
from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.ranks.processes.process_control import LocalRanks
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder, started_at
from course_utils.ranks.ranks import Ranks
from course_utils.ranks.run import Attempt
from course_utils.teacher import hiding
from course_utils.teacher.bubblewrap import HOME, LINE, PACKAGES, SealedBox
from course_utils.teacher.wire import ENDED, HEADER, unpack_reply
from course_utils.trace.activity import ActivityFile, shared_memory
from course_utils.words import ranks_in_words

LIMITS = {  # of each rank
    "RLIMIT_AS": 6 << 30,  # bytes of address space; torch alone maps 2 GB
    "RLIMIT_CPU": 240,  # seconds
    "RLIMIT_NPROC": 512,  # processes and threads of the box's user, all ranks together
    "RLIMIT_FSIZE": 256 << 20,  # bytes of one file
    "RLIMIT_CORE": 0,
}
SECONDS = 600.0  # for one submission
START_SECONDS = 90.0
LARGEST_REPLY = 256 << 20
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "COURSE_MPIEXEC")
_KEPT_PREFIXES = ("OMPI_", "PRTE_", "PMIX_", "MPI", "I_MPI_", "UCX_", "FI_")


class ContainedProcesses(LocalRanks):
    """Contained ranks as processes: their ends come through their lines."""

    def __init__(self, pids: list[int], memories: list[int]) -> None:
        self.pids = pids
        self.ended: list[tuple[int, int]] = []  # (rank, exit status), in the order in which it was heard
        self._started = [started_at(pid) for pid in pids]
        self._activity = [ActivityFile(memory) for memory in memories]
        for memory in memories:
            os.close(memory)

    def place(self, rank: int) -> str:
        return ""

    def how_it_ended(self) -> str:
        """A sentence on the rank that died first."""
        return status_text(*self.ended[0]) if self.ended else f"{ranks_in_words(self.dead())} ended."


class ContainedConnection(Connection):
    """The line to contained ranks. What comes back is read as data, see `wire`."""

    control: ContainedProcesses

    def __init__(self, folder: RanksFolder, lines: list["_Line"], process: subprocess.Popen, home: str) -> None:
        """`home`: the folder that all ranks can write to, as they call it."""
        self.pids = [line.pid for line in lines]
        control = ContainedProcesses(self.pids, [line.memory for line in lines])
        super().__init__(folder, None, range(len(lines)), control)
        self._sockets = [line.socket for line in lines]
        self._process, self.home = process, home
        self._came = [bytearray() for _ in lines]
        self._number = 0
        self.deadline = float("inf")

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Send each rank its task, bytes that this process has packed; or one in which they only meet."""
        if time.monotonic() > self.deadline:
            raise RanksGone(f"the submission took more than {SECONDS:.0f} s")
        if self.control.dead():
            self._hear_of_ends()
            raise RanksGone(self.control.how_it_ended())
        self._number += 1
        for rank, (payload,) in arguments.items():
            if function == "meet":
                payload = to_bytes(RankTask(to_bytes(bool), (), {}, len(arguments), payload))
            with contextlib.suppress(OSError):  # a dead rank is seen while waiting
                self._sockets[rank].sendall(HEADER.pack(self._number, len(payload)) + payload)
        return dict.fromkeys(arguments)

    def wait_for(self, pending: dict[int, Any], *, limit: float | None = None, **options: Any) -> Watched:
        """As for a notebook's ranks, and never beyond the submission's time. No task is lost on its way to them."""
        left = max(self.deadline - time.monotonic(), 0.1)
        return super().wait_for(pending, limit=min(limit or left, left), **options | {"size": 1 << 40})

    def _collect(self, call: Watched) -> bool:
        for rank, reply in self._read(call.lost):
            if rank in call.pending:
                del call.pending[rank]
                call.replies[rank] = reply
        if self.control.dead():
            self._hear_of_ends()
        return bool(call.pending)

    def _hear_of_ends(self) -> None:
        """Read on until it was said how a rank has ended."""
        until = time.monotonic() + 0.5
        while not self.control.ended and time.monotonic() < until:
            for _ in self._read([]):
                pass

    def _read(self, lost: list[int]) -> Iterator[tuple[int, Reply]]:
        """The replies to this call that have come; `lost` gets ranks whose lines cannot be used again."""
        ranks = {line: rank for rank, line in enumerate(self._sockets)}
        for line in select.select(list(ranks), [], [], 0.01)[0]:
            rank = ranks[line]
            with contextlib.suppress(OSError):
                piece = line.recv(1 << 20)
                if not piece:
                    time.sleep(0.01)  # its end is heard of by its process
                self._came[rank] += piece
            while (reply := self._reply(rank, lost)) is not None:
                yield rank, reply

    def _reply(self, rank: int, lost: list[int]) -> Reply | None:
        """The rank's reply, once it is there."""
        came = self._came[rank]
        while len(came) >= HEADER.size:
            number, size = HEADER.unpack_from(came)
            if size > LARGEST_REPLY:
                came.clear()
                lost.append(rank)  # the rest of it still comes; new ranks start before the next call
                return Reply(rank, "raised", error=Raised("MemoryError", "its result is too large to send"))
            if len(came) < HEADER.size + size:
                return None
            data = bytes(came[HEADER.size : HEADER.size + size])
            del came[: HEADER.size + size]
            if number == ENDED:
                self.control.ended.append((rank, data[0] if data else 0))
            elif number == self._number:
                return unpack_reply(rank, data)
        return None

    def close(self) -> None:
        """End everything that the ranks have started: the box with all that is in it."""
        for line in self._sockets:
            line.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self.folder.end(grace=0.0)


class ContainedRanks(Ranks):
    """Ranks in a box. Each call travels by itself."""

    connection: ContainedConnection

    def _meeting(self, backend: str | None) -> str:
        return f"{self.connection.home}/meeting-{time.monotonic_ns()}" if backend else ""

    def attempt_each(self, tasks: Sequence[tuple[Callable, tuple]], **_: Any) -> list[Attempt]:
        """None: what travels together would have to be taken apart again."""
        return []


@contextmanager
def contained_ranks(
    number: int, deadline: float = float("inf"), since: str = "", boxed: bool = True
) -> Iterator[Ranks]:
    """Ranks that serve one submission; whatever they have started ends with them.

    Args:
        number: how many.
        deadline: on the clock of `time.monotonic`; later tasks are refused.
        since: the submission's first lesson, by its stem: what lessons before it taught is in sight; "" hides it too.
        boxed: False for code that is trusted: it runs as whoever grades, with limits and nothing else.

    Raises:
        CourseError: they do not start.
    """

    def launch() -> tuple[ContainedConnection, dict]:
        connection = _launch(number, since, boxed)
        connection.deadline = deadline
        ranks = [{"rank": rank, "pid": pid} for rank, pid in enumerate(connection.pids)]
        return connection, {"ranks": ranks, "line": f"{number} contained ranks", "network": None}

    ranks = ContainedRanks(*launch(), start_again=launch)
    try:
        yield ranks
    finally:
        ranks.stop()


def _launch(number: int, since: str, boxed: bool) -> ContainedConnection:
    folder = RanksFolder.new()
    folder.own()
    path = folder.path
    hiding.write_package(path / "package", since)
    (path / "home").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path / "line"))
        listener.listen(number)
        places = _Places(LINE, HOME, PACKAGES) if boxed else _Places(path / "line", path / "home", path / "package")
        command = [find_mpiexec(), "-n", str(number), sys.executable, "-m", "course_utils.teacher.contained_rank"]
        command += [str(places.line), json.dumps(LIMITS)]
        if boxed:
            path.chmod(0o711)
            box = SealedBox.of(path)
            box.give(path / "line")
            command = box.command(command)
        log = shared_memory()  # what they write there can fill no disk
        process = _start(command, path, _environment(number, places, HOME if boxed else str(path)), log)
        try:
            lines = _greet(listener, number, process, log)
        except BaseException:
            process.kill()
            folder.end()
            raise
        finally:
            os.close(log)
    return ContainedConnection(folder, lines, process, places.home)


class _Places:
    """Where the ranks find the line to the grader, their home, and the course."""

    def __init__(self, line: str | Path, home: str | Path, packages: str | Path) -> None:
        self.line, self.home, self.packages = str(line), str(home), str(packages)


def _environment(number: int, places: _Places, mark: str) -> dict[str, str]:
    """Little of this process's own: what Python and MPI need, and nothing private."""
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        "UCX_TLS": "posix,self",
        "UCX_LOG_LEVEL": "fatal",
        "GLOO_SOCKET_IFNAME": "lo",
        **kept,
        **dict.fromkeys(threads, str(threads_per_rank(number))),
        MARK: mark,
        "PYTHONPATH": places.packages,
        "PYTHONDONTWRITEBYTECODE": "1",
        "COURSE_RUNTIME": places.home,
        "COURSE_HOME": places.home,
        "HOME": places.home,
        "TMPDIR": places.home,
        "USER": "learner",
        "MPLBACKEND": "agg",
    }


def _start(command: list[str], path: Path, environment: dict[str, str], log: int) -> subprocess.Popen:
    """A process in a group of its own."""
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        umask=0o022,  # else nobody but the maker of the box can look into its folders
        cwd=path / "home",
    )


class _Line:
    """The line to one rank, its process as the kernel names it here, and the memory of its activity."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self.socket, self.pid = line, pid
        self.memory = shared_memory()
        socket.send_fds(line, [b"m"], [self.memory])


def _greet(listener: socket.socket, number: int, process: subprocess.Popen, log: int) -> list[_Line]:
    """Wait until every rank has said which it is."""
    found: dict[int, _Line] = {}
    deadline = time.monotonic() + START_SECONDS
    while len(found) < number:
        if time.monotonic() > deadline or process.poll() is not None:
            written = os.pread(log, 1 << 16, 0).partition(b"\0")[0].decode(errors="replace").splitlines()
            raise CourseError("The contained ranks did not start. What they wrote:\n" + "\n".join(written[-5:]))
        if not select.select([listener], [], [], 0.1)[0]:
            continue
        line, _ = listener.accept()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        line.settimeout(60.0)
        hello, [(_, _, credentials)], _, _ = line.recvmsg(100, socket.CMSG_SPACE(12))
        found[json.loads(hello)["rank"]] = _Line(line, struct.unpack("3i", credentials)[0])
    return [found[rank] for rank in range(number)]

"""Starts the ranks of a submission: each in a box of its own where links between boxes can be had, else all in one."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import GIB, memory_bytes, memory_left, threads_per_rank
from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder
from course_utils.system import bind_in
from course_utils.teacher import counted_links, hiding
from course_utils.teacher.bubblewrap import HOME, LINE, PACKAGES, SealedBox
from course_utils.teacher.counted_links import CountedLinks
from course_utils.teacher.pmi import JobBoard
from course_utils.trace.activity import shared_memory

LIMITS = {  # of each rank
    "RLIMIT_AS": 6 << 30,  # bytes of address space; torch alone maps 2 GB
    "RLIMIT_CPU": 240,  # seconds
    "RLIMIT_NPROC": 512,  # processes and threads of the box's user, all ranks together
    "RLIMIT_FSIZE": 256 << 20,  # bytes of one file
    "RLIMIT_CORE": 0,
}
START_SECONDS = 90.0
_NO_START = "The contained ranks did not start"
_NO_NODES = {settings.NODES.name: ""}
"""The links are not shaped, so that no exercise may take them for slow ones."""
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", settings.MPIEXEC.name)
_KEPT_PREFIXES = ("OMPI_", "PRTE_", "PMIX_", "MPI", "I_MPI_", "UCX_", "FI_")


class RankLine:
    """The line to one rank, its process as the kernel names it here, and the memory of its activity."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self.socket, self.pid = line, pid
        self.memory = shared_memory()
        socket.send_fds(line, [b"m"], [self.memory])


class StartedBoxes:
    """The ranks' processes, and what is between them.

    Attributes:
        home: the folder that a rank can write to, as it calls it.
        links: between the ranks' boxes; None where all ranks are in one, or in none.
        memory_ran_out: whether they were ended because the machine had too little left.
        lines: to the ranks, when they have said which they are.
    """

    def __init__(self, folder: RanksFolder, number: int, boxed: bool, apart: bool) -> None:
        """Raises CourseError where they do not start."""
        self.folder, self._number, self._boxed = folder, number, boxed
        path = folder.path
        self.home = HOME if boxed else str(path / "home")
        self.links: CountedLinks | None = None
        self._processes: list[subprocess.Popen] = []
        self._logs: list[int] = []
        self._board: JobBoard | None = None
        self.lines: list[RankLine] = []
        self.memory_ran_out = False
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        try:
            with bind_in(str(path), "line") as listener:
                listener.listen(number)
                if boxed:
                    path.chmod(0o711)
                if boxed and apart and number > 1 and counted_links.obstacle() is None:
                    self._start_in_boxes_of_their_own()
                else:
                    self._start_together()
                if boxed:
                    self._watch.start()
                try:
                    self._greet(listener)
                except (OSError, ValueError) as error:
                    raise CourseError(f"{_NO_START} ({error}). What they wrote:\n{self._written()}") from error
        except OSError as error:
            self.close()
            raise CourseError(f"{_NO_START} in {path} ({error}). `export TMPDIR=/tmp` takes another folder.") from error
        except BaseException:
            self.close()
            raise
        finally:
            for log in self._logs:
                os.close(log)
            if self._board:
                self._board.close()

    def close(self) -> None:
        """End everything that the ranks have started: the boxes with all that is in them."""
        self._closed.set()
        if self._watch.is_alive():
            self._watch.join()
        self._kill()
        for process in self._processes:
            process.wait()
        if self.links:
            self.links.close()
        self.folder.end(grace=0.0)

    def _kill(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _watch_memory(self) -> None:
        """Runs beside the ranks, until they are closed: no limit of the kernel's holds for all processes of a box."""
        while not self._closed.wait(0.1):
            if memory_left() < least_memory():
                self.memory_ran_out = True
                return self._kill()

    def _start_in_boxes_of_their_own(self) -> None:
        nodes = self.folder.path / "nodes"
        nodes.mkdir(mode=0o700)
        self.links = CountedLinks(self._number, nodes)
        self._board = JobBoard(self._number)
        box = self._box()
        for rank in range(self._number):
            joins, inherited = self._board.environment(rank)
            command = [*self.links.beside(rank), *box.command(self._rank_command(), networked=True)]
            self._start(command, self._environment() | network.environment() | _NO_NODES | joins, [inherited])
        self._board.started()
        self.links.count_for(process.pid for process in self._processes)

    def _start_together(self) -> None:
        command = [find_mpiexec(), "-n", str(self._number), *self._rank_command()]
        environment = {"UCX_TLS": "posix,self", "GLOO_SOCKET_IFNAME": "lo"} | self._environment()
        self._start(self._box().command(command) if self._boxed else command, environment)

    def _box(self) -> SealedBox:
        box = SealedBox.of(self.folder.path)
        box.give(self.folder.path / "line")
        return box

    def _rank_command(self) -> list[str]:
        line = LINE if self._boxed else self.folder.path / "line"
        return [sys.executable, "-m", "course_utils.teacher.contained_rank", str(line), json.dumps(LIMITS)]

    def _environment(self) -> dict[str, str]:
        """Little of this process's own: what Python and MPI need, and nothing private."""
        path = self.folder.path
        kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return {
            "UCX_LOG_LEVEL": "fatal",
            **kept,
            **dict.fromkeys(threads, str(threads_per_rank(self._number))),
            MARK: HOME if self._boxed else str(path),
            "PYTHONPATH": PACKAGES if self._boxed else str(path / "package"),
            "PYTHONDONTWRITEBYTECODE": "1",
            settings.RUNTIME.name: self.home,
            settings.HOME.name: self.home,
            "HOME": self.home,
            "TMPDIR": self.home,
            "USER": "learner",
            "MPLBACKEND": "agg",
        }

    def _start(self, command: Sequence[str], environment: dict[str, str], inherited: Sequence[int] = ()) -> None:
        """A process in a group of its own."""
        log = shared_memory()  # what it writes there can fill no disk
        self._logs.append(log)
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=inherited,
            start_new_session=True,
            umask=0o022,  # else nobody but the maker of the box can look into its folders
            cwd=self.folder.path / "home",
        )
        self._processes.append(process)

    def _greet(self, listener: socket.socket) -> None:
        """Wait until every rank has joined MPI, and has said which it is."""
        found: dict[int, RankLine] = {}
        asking = dict(zip(self._board.sockets, range(self._number), strict=True)) if self._board else {}
        joining: list[socket.socket] = []
        deadline = time.monotonic() + START_SECONDS
        while len(found) < self._number:
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise CourseError(f"{_NO_START}. What they wrote:\n{self._written()}")
            for ready in select.select([listener, *joining, *asking], [], [], 0.1)[0]:
                if ready is listener:
                    joining.append(listener.accept()[0])
                    joining[-1].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    joining[-1].settimeout(60.0)
                elif self._board and ready in asking:
                    self._board.serve(asking[ready])
                    if ready.fileno() < 0:
                        del asking[ready]
                else:
                    joining.remove(ready)
                    hello, [(_, _, credentials)], _, _ = ready.recvmsg(100, socket.CMSG_SPACE(12))
                    found[json.loads(hello)["rank"]] = RankLine(ready, struct.unpack("3i", credentials)[0])
        self.lines = [found[rank] for rank in range(self._number)]

    def _written(self) -> str:
        """The last lines that the ranks wrote."""
        logs = [os.pread(log, 1 << 16, 0).partition(b"\0")[0].decode(errors="replace") for log in self._logs]
        return "\n".join(line for log in logs for line in log.splitlines()[-5:])


def start_boxes(number: int, since: str, boxed: bool, apart: bool) -> StartedBoxes:
    """Start ranks; arguments as for `contained_ranks`.

    Raises:
        CourseError: they do not start, and did not when it was tried once more.
    """
    _wait_for_memory()
    with contextlib.suppress(CourseError):
        return StartedBoxes(_folder_of_boxes(since), number, boxed, apart)
    return StartedBoxes(_folder_of_boxes(since), number, boxed, apart)


def _folder_of_boxes(since: str) -> RanksFolder:
    folder = RanksFolder.new()
    folder.own()
    hiding.write_package(folder.path / "package", since)
    (folder.path / "home").mkdir(mode=0o700)
    return folder


def _wait_for_memory() -> None:
    """What an earlier submission had is given back only when all its processes have ended."""
    deadline = time.monotonic() + 30.0
    while (left := memory_left()) < 2 * least_memory():
        if time.monotonic() > deadline:
            raise CourseError(
                f"This machine has only {left / 1e9:.1f} GB of memory left. End other programs, and grade again."
            )
        time.sleep(0.1)


def least_memory() -> float:
    """Bytes that must be left for others; where there are fewer, a submission ends."""
    return min(GIB, memory_bytes() / 16)

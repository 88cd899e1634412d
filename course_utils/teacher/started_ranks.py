"""Starts the ranks of a submission, all in one box."""

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

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import GIB, memory_bytes, memory_left, threads_per_rank
from course_utils.ranks.processes.failed_start import unrelated_processes_text
from course_utils.ranks.processes.launch_ranks import ends_of, find_mpiexec
from course_utils.ranks.processes.open_mpi import OWN_LAUNCH
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder
from course_utils.system import bind_in
from course_utils.teacher import hiding
from course_utils.teacher.sandbox import HOME, LINE, PACKAGES, Sandbox
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
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", settings.MPIEXEC.name)
_KEPT_PREFIXES = ("OMPI_", "PRTE_", "PMIX_", "MPI", "I_MPI_", "UCX_", "FI_")


class RankLine:
    """The line to one rank, its process as the kernel names it here, and the memory of its activity."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self.socket, self.pid = line, pid
        self.memory = shared_memory()
        socket.send_fds(line, [b"m"], [self.memory])


class StartedRanks:
    """The ranks' processes.

    Attributes:
        home: the folder that a rank can write to, as it calls it.
        memory_ran_out: whether they were ended because the machine had too little left.
        lines: to the ranks, when they have said which they are.
    """

    def __init__(self, folder: RanksFolder, number: int, boxed: bool) -> None:
        """Raises CourseError where they do not start."""
        self.folder, self._number, self._boxed = folder, number, boxed
        path = folder.path
        self.home = HOME if boxed else str(path / "home")
        self._process: subprocess.Popen | None = None
        self._log = shared_memory()  # what the ranks write there can fill no disk
        self.lines: list[RankLine] = []
        self.memory_ran_out = False
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        try:
            with bind_in(str(path), "line") as listener:
                listener.listen(number)
                if boxed:
                    path.chmod(0o711)
                self._process = self._started()
                if boxed:
                    self._watch.start()
                try:
                    self._greet(listener, self._process)
                except (OSError, ValueError) as error:
                    raise CourseError(f"{_NO_START} ({error}). What they wrote:\n{self._written()}") from error
        except OSError as error:
            self.close()
            raise CourseError(
                f"{_NO_START} in {path} ({error}). `export TMPDIR=/tmp` takes a different folder."
            ) from error
        except BaseException:
            self.close()
            raise
        finally:
            os.close(self._log)

    def close(self) -> None:
        """End everything that the ranks have started: the box with all that is in it."""
        self._closed.set()
        if self._watch.is_alive():
            self._watch.join()
        self._kill()
        if self._process:
            self._process.wait()
        self.folder.end(grace=0.0)

    def _kill(self) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _watch_memory(self) -> None:
        """Runs beside the ranks, until they are closed: no limit of the kernel's holds for all processes of a box."""
        while not self._closed.wait(0.1):
            if memory_left() < least_memory():
                self.memory_ran_out = True
                return self._kill()

    def _started(self) -> subprocess.Popen:
        """mpiexec with the ranks, in a group of processes of its own."""
        return subprocess.Popen(
            self._command(),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            umask=0o022,  # else nobody but the maker of the box can look into its folders
            cwd=self.folder.path / "home",
        )

    def _command(self) -> list[str]:
        line = self.folder.path / "line"
        address = LINE if self._boxed else str(line)
        rank = [sys.executable, "-m", "course_utils.teacher.contained_rank", address, json.dumps(LIMITS)]
        command = [find_mpiexec(), "-n", str(self._number), *rank]
        if not self._boxed:
            return command
        box = Sandbox.of(self.folder.path)
        box.give(line)
        return box.command(command)

    def _environment(self) -> dict[str, str]:
        """Little of this process's own: what Python and MPI need, and nothing private."""
        path = self.folder.path
        kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return {
            "UCX_LOG_LEVEL": "fatal",
            "UCX_TLS": "posix,self",
            "GLOO_SOCKET_IFNAME": "lo",
            **OWN_LAUNCH,
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # by a system call that the sandbox forbids
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

    def _greet(self, listener: socket.socket, process: subprocess.Popen) -> None:
        """Wait until every rank has joined MPI, and has said which it is."""
        found: dict[int, RankLine] = {}
        joining: list[socket.socket] = []
        deadline = time.monotonic() + START_SECONDS
        while len(found) < self._number:
            if time.monotonic() > deadline or process.poll() is not None:
                raise CourseError(f"{_NO_START}. What they wrote:\n{self._written()}")
            for ready in select.select([listener, *joining], [], [], 0.1)[0]:
                if ready is listener:
                    joining.append(listener.accept()[0])
                    joining[-1].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    joining[-1].settimeout(60.0)
                else:
                    joining.remove(ready)
                    hello, [(_, _, credentials)], _, _ = ready.recvmsg(100, socket.CMSG_SPACE(12))
                    rank = json.loads(hello)["rank"]
                    if rank in found:  # each takes itself for rank 0
                        raise CourseError(f"{_NO_START}: {unrelated_processes_text(self._number)}")
                    found[rank] = RankLine(ready, struct.unpack("3i", credentials)[0])
        self.lines = [found[rank] for rank in range(self._number)]

    def _written(self) -> str:
        """The first and the last lines that mpiexec and the ranks wrote."""
        log = os.pread(self._log, 1 << 16, 0).partition(b"\0")[0].decode(errors="replace")
        return "\n".join(ends_of(log))


def start_ranks(number: int, since: str, boxed: bool) -> StartedRanks:
    """Start ranks; arguments as for `contained_ranks`.

    Raises:
        CourseError: they do not start, and did not when it was tried once more.
    """
    _wait_for_memory()
    with contextlib.suppress(CourseError):
        return StartedRanks(_new_folder(since), number, boxed)
    return StartedRanks(_new_folder(since), number, boxed)


def _new_folder(since: str) -> RanksFolder:
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
                f"This machine has only {left / 1e9:.1f} GB of memory left. Close other programs, and grade again."
            )
        time.sleep(0.1)


def least_memory() -> float:
    """Bytes that must be left for others; where there are fewer, a submission ends."""
    return min(GIB, memory_bytes() / 16)

"""A process that has imported what every rank needs, and forks: a rank that begins so need not import it again.

Started by `course_utils.ranks.processes.forking` as `python -m course_utils.ranks.engine.fork_server FOLDER`. It serves
in two steps: over the socket "engine" in its folder as soon as MPI, NumPy and ipyparallel's engine are there; then a
fork of it over the socket "torch", once somebody wants torch and it is there too.

What is forked must be whole, and nobody else's. So the server runs no thread, starts no MPI and touches no GPU. It
reads nothing of what it is asked: the child does, and no child sees another one's environment. A server that is too
old for the course's files serves nobody; who asked it starts in the usual way.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mpi4py

from course_utils import system
from course_utils.ranks.processes.fork_line import SERVING
from course_utils.ranks.processes.forking import WANTS_TORCH
from course_utils.ranks.processes.installation import version, version_of_files
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder

ENGINE, TORCH = "engine", "torch"
IDLE_SECONDS = 600.0
_POLL_SECONDS = 0.5
_MODULES = {
    ENGINE: (
        "mpi4py.MPI",
        "course_utils.ranks.engine.controller",
        "course_utils.ranks.engine.engine",
        "course_utils.ranks.engine.node",
        "course_utils.ranks.engine.calls",
        "course_utils.checks.hidden_answer",
        "course_utils.ranks.engine_connection",
        "ipyparallel.engine.kernel",
        "IPython.core.completerlib",
        "IPython.core.oinspect",
        "IPython.extensions.storemagic",
        "tornado.platform.asyncio",
    ),
    TORCH: (
        "torch",
        "torch.distributed.nn.functional",
        "torch._dynamo",  # which a process's first optimizer would import
        "course_utils.ranks.engine.torch_group",
    ),
}
_FREE = 200  # descriptors from here on are nobody's


class ForkServer:
    """One step: its socket, and the processes that it has forked."""

    def __init__(self, folder: RanksFolder, step: str) -> None:
        self._folder, self._step = folder, step
        for module in _MODULES[step]:
            importlib.import_module(module)
        if step == ENGINE:
            from course_utils.ranks.engine.engine import hide_debugger

            hide_debugger()
        gc.collect()
        gc.freeze()  # or the collector would touch, and so copy, every page of the children's
        self._packages_changed = _packages_changed()
        self._children: dict[int, socket.socket | None] = {}  # process → who waits for its end
        self._next_step: int | None = None
        self._last_request = time.monotonic()
        self._listener = _listener(folder.path / step)

    def run(self) -> None:
        """Serve until nobody owns the folder, or nobody has asked for ten minutes, or the course's files change."""
        woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while self._needed():
            if self._step == ENGINE and self._next_step is None and (self._folder.path / WANTS_TORCH).exists():
                self._begin_next_step()
            watched: list[Any] = [self._listener, woken]
            ready, _, _ = select.select(watched, [], [], _POLL_SECONDS)
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
            for pid, status in _ended_children():
                self._report_end(pid, status)
            if self._listener in ready:
                self._answer()
        for name in (SERVING, self._step):
            (self._folder.path / name).unlink(missing_ok=True)
        if self._step == ENGINE and not self._folder.living_owners():
            self._folder.end()

    def _needed(self) -> bool:
        if self._children:
            self._last_request = time.monotonic()
        return bool(self._folder.living_owners()) and time.monotonic() - self._last_request < IDLE_SECONDS

    def _begin_next_step(self) -> None:
        self._next_step = self._fork(None)
        if self._next_step:
            return
        system.end_with_parent(signal.SIGTERM)  # it goes with the first step
        ForkServer(self._folder, TORCH).run()
        os._exit(0)

    def _report_end(self, pid: int, status: int) -> None:
        """Say to who waits how a child has ended: its exit code, or its signal as a negative number."""
        if pid == self._next_step:
            self._last_request = 0.0  # the better step has found that it is not needed, or has died
        if line := self._children.pop(pid):
            with line, contextlib.suppress(OSError):
                line.sendall(f"ended {os.waitstatus_to_exitcode(status)}".encode())

    def _answer(self) -> None:
        line, _ = self._listener.accept()
        self._last_request = time.monotonic()
        if not _may_ask(line) or not system.has_one_thread():  # or a child would wait for a lock that a thread holds
            line.close()  # who asked starts in the usual way
        elif version_of_files() != version() or _packages_changed() != self._packages_changed:
            line.close()
            self._last_request = 0.0
        elif not self._fork(line):
            _become_requested(line)

    def _fork(self, line: socket.socket | None) -> int:
        """Fork; 0 in the child, which holds nothing of the server's but `line`."""
        if pid := os.fork():
            self._children[pid] = line
            return pid
        signal.set_wakeup_fd(-1)  # which from Python 3.12 on asyncio has done, in every child
        os.close(self._wake)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._listener.close()
        for other in self._children.values():
            if other:
                other.close()
        return 0


def _listener(path: Path) -> socket.socket:
    """A socket in the folder, which its user alone can enter; its name appears when it can be asked."""
    listener = system.bind_in(str(path.parent), f"{path.name}.new")
    listener.listen(64)
    path.with_name(f"{path.name}.new").rename(path)
    return listener


def _packages_changed() -> int:
    """When something was last installed or removed."""
    return os.stat(os.path.dirname(os.path.dirname(mpi4py.__file__))).st_mtime_ns


def _ended_children() -> Iterator[tuple[int, int]]:
    """(process, status) of children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _may_ask(line: socket.socket) -> bool:
    return system.asking_user(line) == os.getuid()


# --- in the child -----------------------------------------------------------------------------------------------------


def _become_requested(line: socket.socket) -> None:
    """Read what is asked for, and be that process to the end."""
    status = 1
    try:
        request, descriptors = _receive_request(line)
        *streams, user, mounts = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FREE) for descriptor in descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        for name, namespace in (("user", user), ("mnt", mounts)):
            system.enter_namespace(name, namespace)  # of who asked
            os.close(namespace)
        _take_over_settings(request)
        line.sendall(f"began {os.getpid()}".encode())
        line.close()
        for descriptor, target in zip(streams, request["targets"], strict=True):
            os.dup2(descriptor, target)
            os.close(descriptor)
        module, *arguments = request["command"]
        sys.argv = [module, *arguments]
        importlib.import_module(module).main(*arguments)
        status = 0
    except SystemExit as end:
        if end.code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _receive_request(line: socket.socket) -> tuple[dict[str, Any], Sequence[int]]:
    size, descriptors, _, _ = socket.recv_fds(line, 16, 32)
    left, parts = int(size), []
    while left:
        parts.append(line.recv(left))
        left -= len(parts[-1])
    return json.loads(b"".join(parts)), descriptors


def _take_over_settings(request: dict[str, Any]) -> None:
    """Take over environment, working folder, cores and limits; have chance numbers of one's own."""
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    system.show_environment(first=MARK)
    system.take_name(request["command"][0].rpartition(".")[2])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]  # as `python -m` has it
    importlib.invalidate_caches()
    os.umask(0o077)  # what it writes is its user's alone
    system.bind_to(request["cores"])
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, name), limit)
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    _use_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def _use_threads(number: int) -> None:
    """As many threads as OMP_NUM_THREADS says; what is loaded already has read it in the server, where it was 1."""
    if number == 1:
        return
    import threadpoolctl

    threadpoolctl.threadpool_limits(number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)


if __name__ == "__main__":
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    version()  # of the files that are imported now
    ForkServer(RanksFolder(Path(sys.argv[1])), ENGINE).run()

"""Brings up the fork server of this user, and says where it is: from it ranks start at once.

The server (`course_utils.ranks.engine.fork_server`) has a folder like a set of ranks, and is owned, marked and swept
like one. Notebooks share it that belong to one `installation`.
"""

import atexit
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from course_utils import settings, system
from course_utils.file_lock import hold
from course_utils.machine import ranks_python
from course_utils.ranks.processes.detached import open_log, start_detached
from course_utils.ranks.processes.fork_line import SERVING, request_fork
from course_utils.ranks.processes.installation import CHECKOUT, PYTHONS_OWN, installation_key, version
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder, runtime_root, this_machine

WANTS_TORCH = "wants-torch"
"""A file in the server's folder: somebody will need torch."""
_ROOM_BYTES = 8192
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
"""For processes that share the cores."""


def can_fork() -> bool:
    """Whether ranks may be forked here: where fork is safe, and COURSE_FORK is not 0."""
    return system.LINUX and settings.FORK.value()


def fork_server(torch: bool = False, environment: Mapping[str, str] = os.environ) -> RanksFolder | None:
    """The folder of the fork server, which is started where none runs; None where there can be none.

    Args:
        torch: import that too, which takes the server some seconds more.
        environment: of the process whose ranks it will fork.
    """
    version()  # where a notebook asks for a server it has just imported the course: these are its files
    if not can_fork():
        return None
    folder = RanksFolder(runtime_root() / f"ranks-fork-{installation_key(environment)}")
    folder.owners.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.path.chmod(0o700)
    folder.own()
    atexit.register(_leave, folder)
    if torch:
        (folder.path / WANTS_TORCH).touch(mode=0o600)
    with (folder.path / "lock").open("a") as lock:
        hold(lock, settings.RUNTIME.name)
        if not _serves(folder):
            _start(folder, environment)
    return folder


def fork_process(folder: RanksFolder, command: list[str], environment: dict[str, str], log: Path) -> bool:
    """Have a process forked that nobody waits for and that prints to a log; False where no server answers."""
    descriptor = open_log(log)
    try:
        with open(os.devnull) as nothing:
            forked = request_fork(str(folder.path), command, environment, [nothing.fileno(), descriptor, descriptor])
    finally:
        os.close(descriptor)
    if forked:
        forked[1].close()
    return bool(forked)


def _leave(folder: RanksFolder) -> None:
    """Need the server no more. It tidies up itself when nobody does; in the place of one that has died, we do."""
    folder.disown()
    if not _serves(folder):
        folder.leave()


def _serves(folder: RanksFolder) -> bool:
    with contextlib.suppress(OSError, ValueError):
        pid, start = (folder.path / SERVING).read_text().split("-")
        return str(system.started_at(int(pid))) == start
    return False


def _start(folder: RanksFolder, environment: Mapping[str, str]) -> None:
    """Start a server that knows nothing of its user's secrets: of the environment it gets what Python needs."""
    known = {
        **{name: value for name, value in environment.items() if name in _KEPT or name.startswith(PYTHONS_OWN)},
        **ONE_THREAD,
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *filter(None, [environment.get("PYTHONPATH")])]),
        settings.RUNTIME.name: str(folder.path.parent),
        "MPLBACKEND": "agg",
        "UCX_LOG_LEVEL": "fatal",
        MARK: str(folder.path),
        settings.ROOM.name: "-" * _ROOM_BYTES,
    }
    command = [ranks_python(), "-m", "course_utils.ranks.engine.fork_server", str(folder.path)]
    folder.write_facts(**this_machine())
    process = start_detached(command, known, folder.path / "server.log", folder.path)
    (folder.path / SERVING).write_text(f"{process.pid}-{system.started_at(process.pid)}")

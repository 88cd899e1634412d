"""Starts ranks on this machine: a controller of ipyparallel, and under mpiexec one engine for each rank.

ipyparallel's own `Cluster` with its `MPIEngineSetLauncher` starts each engine as a fresh Python, which takes seconds to
import torch. Here engines are forked from a process that has done so, can each be behind a link of their own, and run
under a shell that writes down for the reports how each has ended.
"""

import errno
import functools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import ranks_python, threads_per_rank
from course_utils.ranks.links.network import EmulatedNetwork, behind_links
from course_utils.ranks.links.network import environment as network_environment
from course_utils.ranks.processes import fork_line, forking
from course_utils.ranks.processes.detached import start_detached
from course_utils.ranks.processes.exit_status import SHELL
from course_utils.ranks.processes.open_mpi import OWN_LAUNCH, session_folder
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder, unwritable_text
from course_utils.system import LINUX, LOOPBACK, memory_kills, started_at

MAX_RANKS_PER_CORE = 8
GFORKER = "mpiexec.gforker"
"""MPICH's launcher that forks."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LEAST_ROOM = 1 << 16  # bytes
_FIRST_LINES, _LAST_LINES = 8, 6  # of a log, where all of it would be too much
_CONTROLLERS_CHATTER = "[IPController] heartbeat::"  # of every start
_AS_MODULE = ("-P", "-m")  # from the checkout of this notebook, whatever course lies in the folder at hand
_WITHIN_THIS_MACHINE = {
    "UCX_TLS": "posix,self",  # no sockets, so nobody can listen in
    "HWLOC_COMPONENTS": "-x86",  # asks each core in turn: a new process waits long for its turn on a core that is busy
}
if not LINUX:  # a Mac's MPICH has no UCX; a Mac's name may resolve to nothing, and its firewall asks about open ports
    _WITHIN_THIS_MACHINE |= {
        **{"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"},  # MPICH's libfabric, which calls it so on every system
        **{"HYDRA_IFACE": LOOPBACK, "MPICH_INTERFACE_HOSTNAME": "127.0.0.1"},  # its launcher, and its builds with ch3
    }
_OF_A_JOB = re.compile(r"SLURM_(?!CONF$)|PBS_|LSB_|PMI2?_|PMIX_|PE_HOSTFILE$")
"""What a batch system tells a job. Launchers would take the job's nodes, and wait for the batch system's answers."""
_LAUNCHERS = {"Open MPI": r"Open MPI|OpenRTE|PRRTE", "MPICH": r"HYDRA|MPICH|Intel\(R\) MPI"}
"""What launchers call themselves."""
_CONTROLLER = (
    "--nodb",  # nothing asks for the results of old tasks, and keeping them slows the controller down
    "--HeartMonitor.period=100",  # an engine is registered after two beats …
    "--HeartMonitor.max_heartmonitor_misses=30000",  # … and never given up: who has died is seen by its process
    "--log-level=ERROR",
    "--log-to-file=False",
    *(() if LINUX else ("--usethreads",)),  # its parts would be spawned, and import all that it has imported already
)


def find_mpiexec() -> str:
    """The launcher that belongs to the MPI of the ranks' Python: the one beside it, before any on the PATH.

    MPICH's gforker starts its ranks with plain forks and talks to them through pipes: it opens no port.

    Raises:
        CourseError: there is none, or what $COURSE_MPIEXEC names cannot be run.
    """
    if chosen := settings.MPIEXEC.value():
        if found := shutil.which(chosen):
            return found
        raise CourseError(
            f"{settings.MPIEXEC.name}={chosen} names no program that you can run here. Does the file exist, and may "
            "you execute it? Without this variable the course looks for an mpiexec itself."
        )
    beside = Path(ranks_python()).parent
    for name in (GFORKER, "mpiexec"):
        if os.access(beside / name, os.X_OK):
            return str(beside / name)
    if found := shutil.which("mpiexec"):
        return found
    raise CourseError(
        "There is no mpiexec here. `pip install mpich` installs one. On a cluster, `module load` its MPI first."
    )


@functools.cache
def mpi_library() -> str:
    """Name and version of the MPI that mpi4py is linked with, such as "MPICH 5.0.2". Asked in a process of its own."""
    ask = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    answer = subprocess.run([ranks_python(), "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode:
        raise CourseError(f"mpi4py finds no MPI library: {answer.stderr.strip().splitlines()[-1]}")
    return short_name(answer.stdout)


def launchers_mpi(mpiexec: str) -> str:
    """The MPI that a launcher belongs to, "Open MPI" or "MPICH", as which those made from it count; "" if unknown."""
    if Path(mpiexec).name == GFORKER:
        return "MPICH"
    try:
        asked = [mpiexec, "--version"]
        answer = subprocess.run(asked, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((mpi for mpi, words in _LAUNCHERS.items() if re.search(words, answer.stdout)), "")


def _takes_forked_ranks(mpiexec: str) -> bool:
    """Whether a rank may be forked from a server, and not by its launcher, to which it gets by PMI_FD or by PMIx."""
    return forking.can_fork() and (Path(mpiexec).name == GFORKER or launchers_mpi(mpiexec) == "Open MPI")


@functools.cache
def links_obstacle() -> str | None:
    """Why ranks of this MPI cannot be nodes behind links, whatever the system allows; None where they can.

    Source: Open MPI 4.1, ompi_info(1). Its components `ext3x` and others use a library of PMIx; `pmix3x` contains one.
    """
    mpiexec = find_mpiexec()
    if launchers_mpi(mpiexec) != "Open MPI":
        return None
    if (version := re.match(r"Open MPI (\d+)", mpi_library())) and int(version[1]) > 4:
        return f"with {mpi_library()} ranks do not reach their launcher from a node. They do with Open MPI 4 and MPICH."
    beside = Path(mpiexec).with_name("ompi_info")
    ompi_info = str(beside) if beside.exists() else shutil.which("ompi_info")
    try:
        asked = [ompi_info or "ompi_info", "--parsable"]
        components = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if not re.search(r"^mca:pmix:pmix\dx:", components, flags=re.MULTILINE):
        return None
    return (
        "this Open MPI contains a PMIx of its own, with which ranks do not reach their launcher from a node. They do "
        "with one that uses the library libpmix.so.2."
    )


def short_name(version: str) -> str:
    """Name and version out of what an MPI library says of itself."""
    match = re.search(r"(MPICH|Open MPI|Intel\(R\) MPI)\D*([\d.]+)", version)
    return f"{match[1]} {match[2]}" if match else version.split("\n")[0][:40]


def check_number(ranks: object, cores: int) -> None:
    """Reject what cannot be meant.

    Raises:
        CourseError: not a whole number from 1 to eight for each core.
    """
    most = max(8, MAX_RANKS_PER_CORE * cores)
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise CourseError(f"start({ranks!r}): the number of ranks must be a whole number, as in start(4).")
    if ranks > most:
        raise CourseError(
            f"start({ranks}): {ranks} ranks on {cores} cores would mostly wait for each other. "
            f"At most {most} make sense here. The lessons use 4."
        )


def launch(folder: RanksFolder, ranks: int, network: EmulatedNetwork | None = None) -> None:
    """Start controller, ranks and watch, and return at once. Every process carries the folder's mark.

    With a network, each rank goes into a node of its own before it joins MPI; the rest stays where the notebook is.

    Raises:
        CourseError: no mpiexec, or the system cannot run it.
    """
    mpiexec = find_mpiexec()
    inherited = {name: value for name, value in os.environ.items() if not _OF_A_JOB.match(name)}
    own = environment_of(folder, threads_per_rank(ranks))
    environment = {**_WITHIN_THIS_MACHINE, **OWN_LAUNCH, **session_folder(folder.path), **inherited, **own}
    environment["GLOO_SOCKET_IFNAME"] = LOOPBACK
    environment.pop("MPI_LOCALNRANKS", None)
    if network:
        environment |= network_environment()
    module = "course_utils.ranks.engine.node" if network else "course_utils.ranks.engine.engine"
    server = forking.fork_server() if _takes_forked_ranks(mpiexec) else None
    interpreter = [ranks_python(), *(["-I", "-S", fork_line.__file__, str(server.path)] if server else _AS_MODULE)]
    rank = ["/bin/sh", "-c", SHELL, "rank", str(folder.path), *interpreter, module, str(folder.path)]
    nodes = folder.path / "nodes"
    nodes.mkdir(mode=0o700)
    folder.write_facts(memory_kills=memory_kills())
    launch_controller(folder, environment, server=server)
    command = behind_links(network, nodes, mpiexec, rank) if network else [mpiexec, "-n", str(ranks), *rank]
    try:
        process = start_detached(command, environment, folder.path / "ranks.log")
    except OSError as error:
        raise CourseError(f"{mpiexec}, which is to start the ranks, cannot be run ({error.strerror}).") from None
    folder.write_facts(launcher=[process.pid, started_at(process.pid)])


def launcher_has_ended(folder: RanksFolder) -> bool:
    """Has what `launch` has started come to its end? No rank lives longer, or can still come."""
    pid, start = folder.facts().get("launcher", (0, None))
    return bool(pid) and (start is None or started_at(pid) != start)


def wait_for_launcher(folder: RanksFolder, seconds: float) -> bool:
    """Wait for the launcher's end, for it may still have something to say; whether it has come."""
    deadline = time.monotonic() + seconds
    while not (ended := launcher_has_ended(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return ended


def environment_of(folder: RanksFolder, threads: int) -> dict[str, str]:
    """What every process of a set of ranks has in its environment, wherever it runs."""
    return {
        MARK: str(folder.path),
        **dict.fromkeys(_THREAD_VARIABLES, str(threads)),
        "IPYTHONDIR": str(folder.path / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "UCX_LOG_LEVEL": "fatal",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *_python_path()]),
        "MPLBACKEND": "agg",
    }


def launch_controller(
    folder: RanksFolder,
    environment: dict[str, str],
    *options: str,
    server: RanksFolder | None = None,
    watchdog: Sequence[str] = (),
) -> None:
    """Start the controller and the watch on this machine; without options the controller listens on loopback only.

    Args:
        server: the fork server, from which the controller comes if it is up already.
        watchdog: another module than the watch's, which watches and does more, and what it is told beside the folder.
    """
    (folder.path / "security").mkdir(mode=0o700)
    controller = ["course_utils.ranks.engine.controller", f"--profile-dir={folder.path}", *_CONTROLLER]
    controller += options or ("--ip=127.0.0.1", "--location=127.0.0.1")  # by default the machine's name, to be resolved
    log = folder.path / "controller.log"
    if not (server and forking.fork_process(server, controller, environment, log)):
        start_detached([ranks_python(), *_AS_MODULE, *controller], environment, log)
    unmarked = {key: value for key, value in environment.items() if key != MARK}
    module, *arguments = watchdog or ("course_utils.ranks.processes.watchdog",)
    watch = [ranks_python(), *_AS_MODULE, module, str(folder.path), *arguments]
    start_detached(watch, unmarked, folder.path / "watch.log")


def _python_path() -> list[str]:
    return [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]


def is_port_taken(folder: RanksFolder) -> bool:
    """Whether the controller could not listen, as another program has taken its port."""
    log = folder.path / "controller.log"
    return log.exists() and "Address already in use" in log.read_text(errors="replace")


def ranks_log(folder: RanksFolder) -> str:
    """What launcher and ranks wrote."""
    file = folder.path / "ranks.log"
    return file.read_text(errors="replace") if file.exists() else ""


def log_of(folder: RanksFolder) -> str:
    """The first and the last lines that controller, launcher and ranks wrote: why a start failed."""
    file = folder.path / "controller.log"
    texts = [file.read_text(errors="replace") if file.exists() else "", ranks_log(folder)]
    lines = [line for text in texts for line in ends_of(text)]
    if shutil.disk_usage(folder.path).free < _LEAST_ROOM:
        lines.append(unwritable_text(folder.path.parent, os.strerror(errno.ENOSPC)))
    return "\n".join(lines)


def ends_of(log: str) -> list[str]:
    """The first lines of a log, in which launchers say what is wrong, and its last, as in Python's tracebacks."""
    lines = [line for line in log.splitlines() if line.strip(" -=*") and _CONTROLLERS_CHATTER not in line]
    few = len(lines) <= _FIRST_LINES + _LAST_LINES
    return lines if few else [*lines[:_FIRST_LINES], "…", *lines[-_LAST_LINES:]]

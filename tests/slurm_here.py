"""A real Slurm on this machine for as long as a test needs it: one controller, two nodes named c1 and c2.

Two slurmd share the machine and tell each other apart by name and port. Everything listens on loopback, keeps its
files in one folder, and is ended by process number. It needs root and Debian's packages slurm-wlm and munge.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo", "scancel")
NODES = ("c1", "c2")
CORES = 4
"""Of each node, as Slurm believes: more than there are, so that four ranks fit on two nodes of a small machine."""
READY_SECONDS = 20


def obstacle() -> str:
    """Why there can be no Slurm here, with what to do; empty where it can be."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing:
        return f"no {missing[0]} here: install slurm-wlm and munge (Debian)"
    return "" if os.geteuid() == 0 else "starting slurmctld and slurmd takes root"


@dataclass(frozen=True)
class SlurmHere:
    """A running Slurm.

    Attributes:
        folder: of its configuration, logs and state.
        environment: in which its commands are to be called.
    """

    folder: Path
    environment: dict[str, str]

    def call(self, *command: str, seconds: float = 30.0) -> str:
        """What a command prints; raises `CalledProcessError` where it fails."""
        options = {"env": self.environment, "timeout": seconds, "check": True, "text": True}
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options).stdout

    def states(self) -> dict[str, str]:
        """Node → its state, such as "idle"."""
        lines = self.call("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)


@contextmanager
def slurm_here() -> Iterator[SlurmHere]:
    """Start a Slurm, and end it with all its jobs."""
    with tempfile.TemporaryDirectory(prefix="course-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        slurm = SlurmHere(folder, environment_of(folder))
        daemons: list[subprocess.Popen] = []
        try:
            start_all(slurm, daemons)
            yield slurm
        finally:
            subprocess.run(
                ["scancel", "--full", "--user=root"], env=slurm.environment, capture_output=True, check=False
            )
            wait_until(lambda: not steps_of(folder), 10)
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                daemon.wait(READY_SECONDS)


def environment_of(folder: Path) -> dict[str, str]:
    """The environment with this Slurm's configuration and commands; nothing of a job that the tests run in."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return {**inherited, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}


def start_all(slurm: SlurmHere, daemons: list[subprocess.Popen]) -> None:
    """munged, slurmctld and two slurmd, one after the other; returns when both nodes are idle."""
    folder = slurm.folder
    write_settings(folder)

    def daemon(*command: str) -> None:
        log = (folder / f"{command[0]}-{len(daemons)}.out").open("w")
        daemons.append(subprocess.Popen(command, env=slurm.environment, stdout=log, stderr=subprocess.STDOUT))
        log.close()

    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    daemon("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", "--num-threads=1", *files)
    wait_until((folder / "munge.socket").exists, READY_SECONDS)
    daemon("slurmctld", "-D")
    for node in NODES:
        daemon("slurmd", "-D", "-N", node)

    def ready() -> bool:
        try:
            return list(slurm.states().values()) == ["idle", "idle"]
        except subprocess.CalledProcessError:
            return False  # slurmctld does not answer yet

    if not wait_until(ready, READY_SECONDS):
        said = "\n".join(file.read_text()[-800:] for file in sorted(folder.glob("*.log")))
        raise RuntimeError(f"Slurm did not start. What it wrote:\n{said}")


def write_settings(folder: Path) -> None:
    """The key for munge, and slurm.conf."""
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (folder / "state").mkdir()
    host, (controller, *ports) = socket.gethostname().split(".")[0], free_ports(1 + len(NODES))
    nodes = []
    for node, port in zip(NODES, ports, strict=True):
        (folder / f"spool-{node}").mkdir()
        nodes.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CORES} RealMemory=1000")
    settings = {
        "ClusterName": "course",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": controller,
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket,cred_expire=20",  # s: so long a requeued job waits, else 120
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",  # listen on the address given, loopback
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": f"{folder}/spool-%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": f"{folder}/slurmd-%n.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": f"{folder}/slurmd-%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "pmi2",
        "SlurmdParameters": "config_overrides",  # believe the CPUs below
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "ReturnToService": 2,
        "KillWait": 2,
        "JobRequeue": 1,
    }
    lines = [*(f"{name}={value}" for name, value in settings.items()), *nodes]
    lines.append(f"PartitionName=course Nodes={','.join(NODES)} Default=YES MaxTime=60 State=UP")
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")


def free_ports(number: int) -> list[int]:
    """Ports of loopback on which nobody listens."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def steps_of(folder: Path) -> list[int]:
    """The slurmstepd processes that belong to this Slurm: those that hold one of its files open."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == "slurmstepd" and any(
                str(one.readlink()).startswith(str(folder)) for one in (entry / "fd").iterdir()
            ):
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile
    return found


def wait_until(true, seconds: float) -> bool:
    """Whether something became true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True

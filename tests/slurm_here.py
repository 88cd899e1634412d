"""A real Slurm on this machine for as long as a test needs it: one controller, two nodes named c1 and c2.

Apart, each node has a network, a host name, a /tmp and a /dev/shm of its own, and shares the folders that are named, as
nodes share a home. Otherwise two slurmd share the machine, tell each other apart by name and port, and listen on
loopback. Each node claims two GPUs, which are plain files: Slurm deals them out, and nothing can compute on them.
All files lie in one folder, and every process is ended by its number; with the last one, the nodes' networks go.
It needs root and Debian's packages slurm-wlm and munge.
"""

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo", "scancel")
NODES = ("c1", "c2")
CORES = 4
"""Of each node, as Slurm believes: more than there are, so that four ranks fit on two nodes of a small machine."""
GPUS = 2
"""Of each node, as Slurm believes."""
MEMORY_PER_CORE = 2000
"""MB that a job may use where it asks for no memory; Slurm ends what takes more than it was given."""
READY_SECONDS = 20
_NODE = """
hostname "$1"
mount --bind "$2" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs "$3"
mkdir "$3/own"
for folder in $4; do mkdir -p "$3${folder#/tmp}"; mount --bind "$folder" "$3${folder#/tmp}"; done
mount --move "$3" /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ip link set lo up
until ip link show eth0; do sleep 0.02; done
ip addr add "$5/24" dev eth0
ip addr add "$6/24" dev eth0
ip link set eth0 up
exec slurmd -D -N "$1"
"""
"""Becomes a node. Arguments: its name, the file of all names, a place for its /tmp, shared folders, its addresses."""


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
        apart: the network of nodes of their own, such as "10.211.7"; "" where they share the machine.
    """

    folder: Path
    environment: dict[str, str]
    apart: str = ""

    @property
    def address(self) -> str:
        """This machine's, as the nodes reach it."""
        return f"{self.apart}.254" if self.apart else "127.0.0.1"

    def node_address(self, node: str, second: bool = False) -> str:
        """The one that its name stands for, or a second one, as of another card."""
        return f"{self.apart}.{NODES.index(node) + 1 + 100 * second}" if self.apart else "127.0.0.1"

    def set_variables(self, patch) -> None:
        """Let this process find Slurm's commands, and its nodes this process."""
        for name, value in self.environment.items():
            patch.setenv(name, value)
        patch.setenv("COURSE_ADDRESS", self.address)
        if not self.apart:
            patch.setenv("GLOO_SOCKET_IFNAME", "lo")

    def call(self, *command: str, seconds: float = 30.0) -> str:
        """What a command prints; raises `CalledProcessError` where it fails."""
        options = {"env": self.environment, "timeout": seconds, "check": True, "text": True}
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options).stdout

    def states(self) -> dict[str, str]:
        """Node → its state, such as "idle"."""
        lines = self.call("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)


def can_be_apart() -> bool:
    """Whether nodes may have networks and mounts of their own here."""
    tried = "ip link add course-try type veth peer name course-end && mount -t tmpfs tmpfs /tmp"
    options = {"capture_output": True, "check": False}
    return subprocess.run(["unshare", "--mount", "--uts", "--net", "sh", "-c", tried], **options).returncode == 0


@contextmanager
def slurm_here(shared: Sequence[Path] | None = None) -> Iterator[SlurmHere]:
    """Start a Slurm, and end it with all its jobs.

    Args:
        shared: folders that nodes share, which are otherwise apart if the system allows it; None: they share all.
    """
    with tempfile.TemporaryDirectory(prefix="course-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        apart = shared is not None and can_be_apart()
        network = f"10.{random.randrange(200, 250)}.{random.randrange(256)}" if apart else ""
        slurm = SlurmHere(folder, environment_of(folder), network)
        daemons: list[subprocess.Popen] = []
        try:
            start_all(slurm, daemons, [folder, Path(__file__).parents[1], *(shared or ())])
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


def start_all(slurm: SlurmHere, daemons: list[subprocess.Popen], shared: Sequence[Path]) -> None:
    """munged, slurmctld and two slurmd, one after the other; returns when both nodes are idle."""
    folder = slurm.folder
    write_settings(slurm)

    def daemon(*command: str) -> int:
        log = (folder / f"{command[0]}-{len(daemons)}.out").open("w")
        daemons.append(subprocess.Popen(command, env=slurm.environment, stdout=log, stderr=subprocess.STDOUT))
        log.close()
        return daemons[-1].pid

    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    daemon("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", "--num-threads=1", *files)
    wait_until((folder / "munge.socket").exists, READY_SECONDS)
    if slurm.apart:
        switch = daemon("unshare", "--net", "sleep", "infinity")
        plug_in(switch, slurm)
        named = (
            f"mount --bind {folder}/hosts /etc/hosts; exec slurmctld -D"  # it listens where its machine's name leads
        )
        daemon("unshare", "--mount", "sh", "-e", "-c", named)
    else:
        daemon("slurmctld", "-D")
    for node in NODES:
        if slurm.apart:
            place = folder / f"tmp-{node}"
            place.mkdir()
            own = [node, str(folder / "hosts"), str(place), " ".join(map(str, shared))]
            own += [slurm.node_address(node, second) for second in (False, True)]
            enter = ["unshare", "--mount", "--uts", "--net", "sh", "-e", "-c", _NODE, "node", *own]
            connect(daemon(*enter), switch, node)
        else:
            daemon("slurmd", "-D", "-N", node)

    def ready() -> bool:
        try:
            return list(slurm.states().values()) == ["idle", "idle"]
        except subprocess.CalledProcessError:
            return False  # slurmctld does not answer yet

    if not wait_until(ready, READY_SECONDS):
        said = "\n".join(file.read_text()[-800:] for file in sorted(folder.glob("*.log")))
        raise RuntimeError(f"Slurm did not start. What it wrote:\n{said}")


def in_network_of(process: int, command: str) -> None:
    """Run lines of shell in the network of a process that has one of its own."""
    subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", "sh", "-e", "-c", command], check=True)


def has_its_own(process: int) -> bool:
    return os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")


def plug_in(switch: int, slurm: SlurmHere) -> None:
    """Connect this machine with the switch, a network that a process keeps."""
    assert wait_until(lambda: has_its_own(switch), READY_SECONDS)
    in_network_of(switch, "ip link add switch type bridge; ip link set switch up")
    here = f"cs{switch}"
    lines = [f"ip link add {here} type veth peer name host netns {switch}"]
    lines += [f"ip addr add {slurm.address}/24 dev {here}", f"ip link set {here} up"]
    subprocess.run(["sh", "-e", "-c", "; ".join(lines)], check=True)
    in_network_of(switch, "ip link set host master switch up")


def connect(node: int, switch: int, name: str) -> None:
    """Give a node its eth0, and plug the other end into the switch."""
    assert wait_until(lambda: has_its_own(node), READY_SECONDS)
    in_network_of(
        switch, f"ip link add {name} type veth peer name eth0 netns {node}; ip link set {name} master switch up"
    )


def write_settings(slurm: SlurmHere) -> None:
    """The key for munge, the names of the nodes, slurm.conf and gres.conf."""
    folder = slurm.folder
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (folder / "state").mkdir()
    host, (controller, *ports) = socket.gethostname().split(".")[0], free_ports(1 + len(NODES))
    nodes = []
    for node, port in zip(NODES, ports, strict=True):
        (folder / f"spool-{node}").mkdir()
        known_as = f"NodeName={node} NodeHostname={node if slurm.apart else host} NodeAddr={slurm.node_address(node)}"
        nodes.append(f"{known_as} Port={port} CPUs={CORES} RealMemory=64000 Gres=gpu:{GPUS}")
    for number in range(GPUS):
        (folder / f"nvidia{number}").touch()
    (folder / "gres.conf").write_text(f"NodeName={','.join(NODES)} Name=gpu File={folder}/nvidia[0-{GPUS - 1}]\n")
    names = [f"{slurm.address} {host}", *(f"{slurm.node_address(node)} {node}" for node in NODES)]
    (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names]) + "\n")
    settings = {
        "ClusterName": "course",
        "SlurmctldHost": f"{host}({slurm.address})",
        "SlurmctldPort": controller,
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket,cred_expire=20",  # s: so long a requeued job waits, else 120
        # Listen on the address given. srun would take that of its machine's name, which other nodes may not reach.
        "CommunicationParameters": "NoCtldInAddrAny" if slurm.apart else "NoCtldInAddrAny,NoInAddrAny",
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
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": MEMORY_PER_CORE,
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=1",
        "JobAcctGatherParams": "OverMemoryKill",
        "GresTypes": "gpu",
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

"""The minder of a rank on another node: starts it, tells the notebook what it does, and does what the notebook asks.

It runs beside its rank, as a process of its own, so a rank that hangs, computes or dies can still be seen and ended.
What it sees goes into a file of the ranks' folder, which all nodes share; what the notebook wants comes the same way.
Started under srun as `python -m course_utils.ranks.slurm.minder FOLDER`.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from course_utils.ranks.processes.ranks_folder import RanksFolder, beat_file
from course_utils.system import cpu_seconds
from course_utils.trace.activity import IDLE, RUNNING, TESTING, ActivityFile

BUSY_SECONDS, IDLE_SECONDS = 0.05, 0.5
"""Between two looks: while the rank works, and while it has nothing to do."""
BEAT_SECONDS = 2.0
"""A report is written at least so often, so that silence means something."""
ALONE_SECONDS = 60.0
"""When the notebook's watch has been silent for so long, the rank is ended: nobody needs it any more."""
_RANK_VARIABLES = ("SLURM_PROCID", "PMI_RANK", "PMIX_RANK")


@dataclass(frozen=True)
class MinderReport:
    """What a minder has seen.

    Attributes:
        beat: counts the reports.
        state, progress, text, look: of the rank's `Activity`.
        computed: CPU seconds of the rank so far.
        ended: the exit status, 128 + the signal for a violent end; None while the rank lives.
        asked: the batch system's signal for the end came before: the rank did not end by itself.
    """

    beat: int
    state: int
    progress: int
    text: str
    look: str = ""
    computed: float = 0.0
    ended: int | None = None
    asked: bool = False


def report_file(folder: RanksFolder, rank: int) -> Path:
    """Where a rank's minder writes."""
    return folder.path / f"minder-{rank}.json"


def order_file(folder: RanksFolder, rank: int) -> Path:
    """Where a notebook writes what a rank's minder must do: a number that no other order has, and a word."""
    return folder.path / f"order-{rank}.json"


def write_whole(file: Path, content: object) -> None:
    """Write JSON so that a reader finds all of it or none."""
    scratch = file.with_suffix(".new")
    scratch.write_text(json.dumps(content))
    scratch.replace(file)


def read_whole(file: Path) -> dict | None:
    """What `write_whole` wrote; None before there is anything."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(file.read_text())
    return None


class Minder:
    """Looks after one rank, its child."""

    def __init__(self, folder: RanksFolder, rank: int, command: list[str]) -> None:
        self.folder, self.rank = folder, rank
        self.activity = ActivityFile(folder.activity_file(rank))
        self.child = subprocess.Popen(command, close_fds=False)  # MPI's start hands a descriptor down
        self.asked = False
        self.beat, self.written, self.told = 0, 0.0, None
        self.obeyed = 0
        self.heard, self.heard_at = None, time.monotonic()
        signal.signal(signal.SIGTERM, self.leave)

    def leave(self, *_: object) -> None:
        """The batch system ends the job: time is up, or somebody cancelled it."""
        self.asked = True
        self.child.terminate()

    def mind(self) -> int:
        """Until the rank has ended; returns its exit status."""
        while (status := self.child.poll()) is None:
            self.tell()
            self.obey()
            if not self.needed():
                self.child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(IDLE_SECONDS if self.activity.read().state == IDLE else BUSY_SECONDS)
        status = status if status >= 0 else 128 - status
        self.tell(status)
        return status

    def tell(self, ended: int | None = None) -> None:
        """Report, if anything is new or the last report is old."""
        seen = self.activity.read()
        new = (seen.state, seen.progress, ended)
        if new != self.told or time.monotonic() - self.written > BEAT_SECONDS:
            self.beat += 1
            self.told, self.written = new, time.monotonic()
            look, computed = seen.look.decode(), self.computed()
            report = MinderReport(self.beat, seen.state, seen.progress, seen.text, look, computed, ended, self.asked)
            with contextlib.suppress(OSError):  # the folder is gone, or full: the next report may come through
                write_whole(report_file(self.folder, self.rank), asdict(report))

    def computed(self) -> float:
        """CPU seconds of the rank so far."""
        with contextlib.suppress(OSError):  # it has ended
            return cpu_seconds(self.child.pid)
        return 0.0

    def obey(self) -> None:
        """Do what the notebook has asked for since the last look."""
        order = read_whole(order_file(self.folder, self.rank))
        if order is None or order["number"] == self.obeyed:
            return
        self.obeyed = order["number"]
        if order["what"] == "kill":
            self.child.kill()
        else:
            self.activity.ask_to_stop()
            if self.activity.read().state in (RUNNING, TESTING):
                self.child.send_signal(signal.SIGINT)

    def needed(self) -> bool:
        """Does anybody still want the rank? Its folder is there, and the watch beside the notebook lives."""
        if not self.folder.path.exists():
            return False
        with contextlib.suppress(OSError):
            beat = beat_file(self.folder).read_text()
            if beat != self.heard:
                self.heard, self.heard_at = beat, time.monotonic()
        return time.monotonic() - self.heard_at < ALONE_SECONDS


def own_rank() -> int:
    """This process's rank, as the launcher says."""
    return next(int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ)


def interface_to(address: str) -> str:
    """The network interface of this node from which messages leave for an address; "" for one that leads nowhere else.

    On the machine of that address itself it is the interface that has it.
    """
    import psutil

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((address, 9))  # sends nothing: the system only chooses a way
        own = asking.getsockname()[0]
    if ipaddress.ip_address(own).is_loopback:
        return ""
    interfaces = psutil.net_if_addrs().items()
    return next((name for name, has in interfaces if own in (one.address for one in has)), "")


def network_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What keeps gloo, MPICH's UCX and NCCL on one network: $COURSE_INTERFACE, or the way to the notebook's machine.

    By itself gloo takes what the node's name stands for, which may be loopback, and UCX and NCCL any interface, such as
    one for containers. What a site or a learner has set stays.

    Source: PyTorch, torch.distributed, "Common environment variables"; OpenUCX and NCCL, environment variables.
    """
    name = environment.get("COURSE_INTERFACE", "")
    with contextlib.suppress(OSError):
        name = name or interface_to(environment.get("COURSE_ADDRESS", ""))
    variables = ("GLOO_SOCKET_IFNAME", "UCX_NET_DEVICES", "NCCL_SOCKET_IFNAME")
    return {variable: name for variable in variables if name and variable not in environment}


if __name__ == "__main__":
    os.umask(0o077)
    os.environ.update(network_variables(os.environ))
    engine = [sys.executable, "-m", "course_utils.ranks.engine.engine", sys.argv[1]]
    sys.exit(Minder(RanksFolder(Path(sys.argv[1])), own_rank(), engine).mind())

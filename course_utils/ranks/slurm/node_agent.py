"""The node agent of a rank on another node: starts it, reports what it does, and does what the notebook orders.

It runs beside its rank, as a process of its own, so a rank that hangs, computes or dies can still be seen and ended.
It sends its reports to the `hub`, and receives from it what the notebook orders.
Started under srun as `python -m course_utils.ranks.slurm.node_agent FOLDER`.
"""

import contextlib
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from course_utils import settings
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.hub import BEAT_SECONDS, HubConnection
from course_utils.system import cpu_seconds
from course_utils.trace.activity import IDLE, RUNNING, TESTING, ActivityFile, shared_memory

BUSY_SECONDS, IDLE_SECONDS = 0.05, 0.5
"""Between two looks: while the rank works, and while it has nothing to do."""
SILENT_HUB_SECONDS = 120.0
"""When the hub has been silent for so long, the rank is ended: nobody needs it any more."""
UNREACHABLE_SECONDS = 30.0
"""The same for a hub that has never been heard."""
_RANK_VARIABLES = ("SLURM_PROCID", "PMI_RANK", "PMIX_RANK")


@dataclass(frozen=True)
class NodeReport:
    """What a node agent has seen.

    Attributes:
        state, progress, text, snapshot, begun: of the rank's `Activity`.
        computed: CPU seconds of the rank so far.
        ended: the exit status, 128 + the signal for a violent end; None while the rank lives.
        asked_to_end: the batch system's signal for the end came before: the rank did not end by itself.
    """

    state: int
    progress: int
    text: str
    snapshot: str = ""
    computed: float = 0.0
    ended: int | None = None
    asked_to_end: bool = False
    begun: bool = False


class NodeAgent:
    """Looks after one rank, its child. It asks no file for anything: the node's file systems may be slow."""

    def __init__(self, folder: RanksFolder, rank: int, command: list[str]) -> None:
        self.rank, self.hub = rank, HubConnection(folder, asks=False)
        memory = shared_memory()
        os.set_inheritable(memory, True)
        self.activity = ActivityFile(memory)
        environment = {**os.environ, settings.ACTIVITY.name: str(memory)}
        self.child = subprocess.Popen(command, close_fds=False, env=environment)  # MPI's start hands a descriptor down
        self.asked_to_end = False
        self.written, self.began = 0.0, time.monotonic()
        self.last_reported: tuple | None = None
        self.last_heard: float | None = None
        signal.signal(signal.SIGTERM, self.leave)

    def leave(self, *_: object) -> None:
        """The batch system ends the job: time is up, or somebody cancelled it."""
        self.asked_to_end = True
        self.child.terminate()

    def run_agent(self) -> int:
        """Until the rank has ended; returns its exit status."""
        given_up = False
        while (status := self.child.poll()) is None:
            self.report_activity()
            self.obey()
            if not self.needed():
                given_up = True
                self.child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(IDLE_SECONDS if self.activity.read().state == IDLE else BUSY_SECONDS)
        status = status if status >= 0 else 128 - status
        self.report_activity(status)
        self.hub.close()
        if given_up and self.last_heard is None:  # a rank that ends at once leaves no time to hear anything
            print(unreachable_text(socket.gethostname(), self.hub.address), flush=True)
        return status

    def report_activity(self, ended: int | None = None) -> None:
        """Report, if anything is new or the last report is old."""
        activity = self.activity.read()
        new = (activity.state, activity.progress, activity.begun, ended)
        if new != self.last_reported or time.monotonic() - self.written > BEAT_SECONDS:
            self.last_reported, self.written = new, time.monotonic()
            snapshot, computed = activity.snapshot.decode(), self.computed()
            own = (
                activity.state,
                activity.progress,
                activity.text,
                snapshot,
                computed,
                ended,
                self.asked_to_end,
                activity.begun,
            )
            self.hub.send({"rank": self.rank, "report": asdict(NodeReport(*own))})

    def computed(self) -> float:
        """CPU seconds of the rank so far."""
        with contextlib.suppress(OSError):  # it has ended
            return cpu_seconds(self.child.pid)
        return 0.0

    def obey(self) -> None:
        """Do what the notebook has asked for since the last look."""
        for message in self.hub.received():
            self.last_heard = time.monotonic()
            if message.get("order") == "kill":
                self.child.kill()
            elif message.get("order") == "interrupt":
                self.activity.ask_to_stop()
                if self.activity.read().state in (RUNNING, TESTING):
                    self.child.send_signal(signal.SIGINT)

    def needed(self) -> bool:
        """Does anybody still want the rank? The hub beside the notebook lives while somebody does."""
        if self.last_heard is None:
            return time.monotonic() - self.began < UNREACHABLE_SECONDS
        return time.monotonic() - self.last_heard < SILENT_HUB_SECONDS


def unreachable_text(node: str, hub: str) -> str:
    """What to do where a node does not reach the machine of the notebook."""
    return (
        f"{node} reaches nobody at {hub}, where the notebook is. Is there a firewall between them? Start the "
        "notebook on a compute node, or ask which ports are open: `export COURSE_PORTS=50000-50099`, before JupyterLab "
        "starts. Is it the wrong network? `export COURSE_ADDRESS=…` names another address of the notebook's machine."
    )


def own_rank() -> int:
    """This process's rank, as the launcher says."""
    return next(int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ)


def interface_to(address: str) -> str:
    """The network interface of this node from which messages leave for an address; "" for one that leads nowhere else.

    On the machine of that address itself it is the interface that has it.
    """
    import psutil

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing: the system only chooses a way
        own = probe.getsockname()[0]
    if ipaddress.ip_address(own).is_loopback:
        return ""
    interfaces = psutil.net_if_addrs().items()
    return next((name for name, has in interfaces if own in (entry.address for entry in has)), "")


def network_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What keeps gloo, MPICH's UCX and NCCL on one network: $COURSE_INTERFACE, or the way to the notebook's machine.

    By itself gloo takes what the node's name stands for, which may be loopback, and UCX and NCCL any interface, such as
    one for containers. What a site or a learner has set stays.

    Source: PyTorch, torch.distributed, "Common environment variables"; OpenUCX and NCCL, environment variables.
    """
    name = settings.INTERFACE.value(environment)
    with contextlib.suppress(OSError):
        name = name or interface_to(settings.ADDRESS.value(environment))
    variables = ("GLOO_SOCKET_IFNAME", "UCX_NET_DEVICES", "NCCL_SOCKET_IFNAME")
    return {variable: name for variable in variables if name and variable not in environment}


if __name__ == "__main__":
    os.umask(0o077)
    os.environ.update(network_variables(os.environ))
    ranks = RanksFolder(Path(sys.argv[1]))
    engine = [sys.executable, "-P", "-m", "course_utils.ranks.engine.engine", sys.argv[1]]
    sys.exit(NodeAgent(ranks, own_rank(), engine).run_agent())

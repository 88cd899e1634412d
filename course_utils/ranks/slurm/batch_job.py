"""Ranks on the nodes of a cluster: a batch job of Slurm, whose ranks the notebook uses like those of its own machine.

The controller runs beside the notebook and listens on the address that the nodes reach, with CurveZMQ: every connection
is encrypted, and open only to who has read the keys in the ranks' folder (mode 0700). The folder lies on a file system
that all nodes share.
"""

import ipaddress
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import ranks_python
from course_utils.ranks.processes.launch_ranks import environment_of, launch_controller, mpi_library
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.words import count, join

COMMANDS = ("sbatch", "srun", "scontrol", "scancel")
QUEUE_SECONDS = 24 * 3600.0
"""How long a job may wait in the queue; the learner can interrupt the cell at any time."""
MORE_MEMORY = '`course.start(…, memory="64G")` asks for more on each node'
_OVER = {
    "TIMEOUT": "its time was up: `course.start(…, minutes=…)` asks for more",
    "CANCELLED": "it was cancelled with scancel",
    "NODE_FAIL": "one of its nodes failed",
    "OUT_OF_MEMORY": f"it took more memory than it may use: {MORE_MEMORY}",
    "PREEMPTED": "a different job took its place",
}
_PLUGINS = {"MPICH": ("pmi2", "cray_shasta", "pmix"), "Open MPI": ("pmix", "pmi2")}
"""What srun may tell the ranks of an MPI of each other with, the best first. Others are taken for made from MPICH."""
_ENGINE_PORTS = 9  # of ipyparallel's controller, on which engines connect
_GB_BESIDE_A_GPU = 8  # of a node's own memory, for a process with CUDA, NCCL and torch
_NEVER = re.compile(
    r"Partition(Config|NodeLimit|TimeLimit)|BadConstraints|AssociationJobLimit|AccountNotAllowed|Invalid(Account|QOS)"
    r"|QOS(NotAllowed|JobLimit|Min\w+)|(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?|MaxMemPerLimit"
)
"""Reasons for which a job waits that no other job's end takes away: Slurm's "Job Reason Codes"."""
_WAITS_FOR = {
    r"ReqNodeNotAvail|Nodes?Down|ReservedForMaintenance": "its nodes are down or reserved (`sinfo -R` says why)",
    r"(Assoc|QOS)Max\w+Per(User|Account)\w*": "your other jobs use all that you may have at a time: `squeue --me`",
    r"(Assoc|QOS)Grp\w+": "your group's jobs use all that it may have at a time: `squeue -A …` lists them",
    r"JobHeld(User|Admin)": "it is held (`scontrol release …` releases it)",
}
"""What is said of reasons whose names alone do not tell what to do."""


@dataclass(frozen=True)
class Job:
    """What is asked of Slurm.

    Attributes:
        ranks: in all.
        nodes: among which they are divided evenly.
        gpus_per_node: 0 for none.
        minutes: after which Slurm ends the job.
        partition: the site's default without.
        cores_per_rank: cores of each rank; without, 1, and 4 beside a GPU, for NCCL's threads and those that load data.
        memory: of each node, such as "64G"; without, the site's default, and 8 GB for each rank beside a GPU.
    """

    ranks: int
    nodes: int = 1
    gpus_per_node: int = 0
    minutes: int = 60
    partition: str | None = None
    cores_per_rank: int | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.cores_per_rank is None:
            object.__setattr__(self, "cores_per_rank", 4 if self.gpus_per_node else 1)
        for name in ("ranks", "nodes", "minutes", "cores_per_rank"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise CourseError(f"start(where='slurm'): {name} is a whole number of at least 1, not {value!r}.")
        gpus = self.gpus_per_node
        if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 0:
            raise CourseError(f"start(where='slurm'): gpus_per_node is a whole number of at least 0, not {gpus!r}.")
        if self.ranks % self.nodes:
            raise CourseError(
                f"{self.ranks} ranks cannot be divided evenly among {self.nodes} nodes. "
                f"Take a multiple of {self.nodes}."
            )
        if self.memory is not None and not re.fullmatch(r"[1-9]\d*[KMGT]?", str(self.memory)):
            raise CourseError(f'{self.memory!r} is not an amount of memory. "64G" is 64 GB on each node.')
        if self.partition is not None and not re.fullmatch(r"[\w.,+-]+", self.partition):
            raise CourseError(f"{self.partition!r} is not a name of a partition. `sinfo` lists them.")

    @property
    def facts(self) -> dict:
        """As kept in the ranks' folder."""
        return asdict(self)

    def options(self) -> list[str]:
        """For sbatch."""
        on_a_node = self.ranks // self.nodes
        given = {
            "nodes": self.nodes,
            "ntasks-per-node": on_a_node,
            "cpus-per-task": self.cores_per_rank,
            "mem": self.memory or (f"{_GB_BESIDE_A_GPU * on_a_node}G" if self.gpus_per_node else None),
            "time": self.minutes,
            "gpus-per-node": self.gpus_per_node or None,
            "partition": self.partition,
        }
        return [f"--{name}={value}" for name, value in given.items() if value is not None]


def address() -> str:
    """The address of this machine that the nodes reach: $COURSE_ADDRESS, or the one of its name.

    Raises:
        CourseError: its name has none, or one that leads nowhere but to itself.
    """
    if named := settings.ADDRESS.value():
        return named
    name = socket.gethostname()
    try:
        found = socket.gethostbyname(name)
    except OSError as error:
        found = f"no address ({error.strerror})"
    if not found[0].isdigit() or ipaddress.ip_address(found).is_loopback:
        raise CourseError(
            f"The nodes must reach this machine, and its name, {name}, stands for {found} here. `ip -brief address` "
            "lists its addresses: `export COURSE_ADDRESS=…` before JupyterLab starts names the one of the cluster's "
            "network."
        )
    return found


def ports(listening: str) -> tuple[list[int], list[int]]:
    """On which ports of this machine the nodes reach the controller, and the hub: free ones of $COURSE_PORTS.

    Without it, the system chooses them, and both lists are empty.

    Raises:
        CourseError: it is no such range, or too few are free.
    """
    if not (port_range := settings.PORTS.value()):
        return [], []
    free = [port for port in port_range if _is_free(listening, port)]
    if len(free) < _ENGINE_PORTS + 1:
        raise CourseError(
            f"Ranks on nodes need {_ENGINE_PORTS + 1} ports of this machine, and {len(free)} of "
            f"COURSE_PORTS={port_range[0]}-{port_range[-1]} are free."
        )
    return free[:_ENGINE_PORTS], free[_ENGINE_PORTS:]


def _is_free(listening: str, port: int) -> bool:
    try:
        socket.create_server((listening, port)).close()
    except OSError:
        return False
    return True


def mpi_plugin() -> str:
    """How srun tells ranks of each other: $COURSE_SRUN_MPI, or the first plugin of this Slurm that their MPI speaks.

    Source: Slurm's MPI guide, "MPICH", "Open MPI" and "Cray"; srun(1), --mpi. Open MPI 5.0, "Launching with Slurm".

    Raises:
        CourseError: this Slurm has none of them.
    """
    if chosen := settings.SRUN_MPI.value():
        return chosen
    try:
        library = mpi_library()
    except CourseError:  # a login node may lack what the nodes have
        library = ""
    spoken = plugins_of(library)
    try:
        answer = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return spoken[0]
    there = re.findall(r"^\s*(\w+)\s*$", answer.stdout + answer.stderr, flags=re.MULTILINE)
    if fitting := [plugin for plugin in spoken if plugin in there]:
        return fitting[0]
    if not there:
        return spoken[0]
    raise CourseError(
        f"srun cannot start ranks of {library or 'MPICH'}: they need --mpi={' or --mpi='.join(spoken)}, and "
        f"`srun --mpi=list` names {join(there)}. Ask your centre which MPI its Slurm can start. If it says that one of "
        f"these fits, name it: `export {settings.SRUN_MPI.name}=…` before JupyterLab starts."
    )


def plugins_of(library: str) -> tuple[str, ...]:
    """The plugins of srun that an MPI such as "Open MPI 4.1.4" speaks, the best first."""
    if not (version := re.match(r"Open MPI (\d*)", library)):
        return _PLUGINS["MPICH"]
    return _PLUGINS["Open MPI"] if int(version[1] or 5) < 5 else _PLUGINS["Open MPI"][:1]  # since 5, PMIx alone


def unrelated_processes_text(ranks: int) -> str:
    """What to do where srun has started processes each of which takes itself for the only rank."""
    return (
        f"{count(ranks, 'process')} started, but they do not know of each other, because srun and MPI do not speak "
        f"the same language (--mpi={mpi_plugin()}). `srun --mpi=list` lists what there is. `export COURSE_SRUN_MPI=…` "
        "before JupyterLab starts chooses a different one."
    )


def environment_for_new_job(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what Slurm told the job that this process may itself run in, and without its folders.

    srun reads such variables as orders: the memory or the cores of this job would contradict those of the new one.
    Folders for scratch files and sockets, such as $TMPDIR, may be this node's alone. What a learner or a site says to
    sbatch (SBATCH_ACCOUNT, SBATCH_PARTITION, …) stays.

    Source: Slurm's sbatch(1) and srun(1), input environment variables.
    """
    inherited = re.compile(r"(SLURM|SRUN|JUPYTER)_|SBATCH_(CPU|MEM)_BIND|(TMPDIR|COURSE_RUNTIME)$")
    return {name: value for name, value in environment.items() if name == "SLURM_CONF" or not inherited.match(name)}


def launch(folder: RanksFolder, job: Job) -> None:
    """Start the controller beside the notebook, and hand the job in; returns at once."""
    own_address = address()
    own = {**environment_of(folder, job.cores_per_rank or 1), settings.ADDRESS.name: own_address}
    for_engines, for_the_hub = ports(own_address)
    options = [f"--ip={own_address}", "--IPController.enable_curve=True"]
    if for_engines:
        options.append(f"--IPController.engine_ports={','.join(map(str, for_engines))}")
    hub = ("course_utils.ranks.slurm.hub", own_address, *map(str, for_the_hub))
    launch_controller(folder, {**os.environ, **own}, *options, watchdog=hub)
    submit(folder, job, own)


def submit(folder: RanksFolder, job: Job, environment: dict[str, str]) -> str:
    """Hand the job in; returns its number, which the folder keeps with the command that ends it.

    Raises:
        CourseError: no Slurm here, or it rejects the job; its own words are in the message.
    """
    node_agent = [ranks_python(), "-P", "-m", "course_utils.ranks.slurm.node_agent", str(folder.path)]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())]
    srun = ["srun", "--export=ALL", f"--mpi={mpi_plugin()}", "--kill-on-bad-exit=0", "--cpu-bind=none", *node_agent]
    script = folder.path / "job.sh"
    script.write_text("\n".join(["#!/bin/sh", "umask 077", *exports, f"exec {shlex.join(srun)}", ""]))
    command = ["sbatch", "--parsable", "--export=ALL", "--job-name=course", f"--output={folder.path}/ranks.log"]
    whole, own = [*command, *job.options(), str(script)], environment_for_new_job(os.environ)
    try:
        answer = subprocess.run(whole, env=own, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise CourseError("There is no Slurm here (no sbatch). `course.start(4)` uses this machine.") from None
    if answer.returncode:
        raise CourseError(f"Slurm rejected the job: {answer.stderr.strip() or answer.stdout.strip()}")
    number = answer.stdout.strip().split(";")[0]
    folder.write_facts(job=number, end_with=["scancel", "--quiet", number])
    return number


def state_of(number: str) -> tuple[str, str]:
    """A job's state, such as "RUNNING", and the reason that Slurm gives.

    ("UNKNOWN", "") where Slurm has forgotten the job, ("NO ANSWER", "") where its controller does not answer now.
    """
    command = ["scontrol", "show", "job", number]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "NO ANSWER", ""
    if answer.returncode and re.search("timed out|[Uu]nable to contact", answer.stderr):
        return "NO ANSWER", ""
    fields = dict(re.findall(r"(JobState|Reason)=(\S+)", answer.stdout))
    return fields.get("JobState", "UNKNOWN"), fields.get("Reason", "")


def waiting_text(number: str) -> str:
    """What a job is waiting for, for a progress bar."""
    state, reason = state_of(number)
    doing = {"PENDING": f"waits in the queue ({_reason_text(reason)})", "NO ANSWER": "is not heard of now"}
    return f"Slurm's job {number} {doing.get(state, 'starts')}"


def _reason_text(reason: str) -> str:
    """A reason of Slurm's, with what it means where its name does not say."""
    meant = next((text for pattern, text in _WAITS_FOR.items() if re.match(pattern, reason)), "")
    return f"{reason.rstrip(',')}: {meant}" if meant else reason


def over_text(number: str) -> str | None:
    """Why a job is over, or will never begin; None while it waits or runs."""
    state, reason = state_of(number)
    if state == "PENDING" and _NEVER.fullmatch(reason):
        return (
            f"Slurm's job {number} asks for more than there is, or than you may have ({reason}): `sinfo` shows nodes, "
            "cores and limits, `sacctmgr show qos` and `sacctmgr show assoc user=$USER` the limits of accounts."
        )
    if state in ("PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "NO ANSWER"):
        return None
    why = _OVER.get(state, f"Slurm says {state}, {reason}".rstrip(", "))
    return f"Slurm's job {number} is over: {why}."

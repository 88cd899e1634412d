"""Ranks on the nodes of a cluster: a batch job of Slurm, whose ranks the notebook uses like those of its own machine.

The controller runs beside the notebook and listens on the address that the nodes reach, with CurveZMQ: every connection
is encrypted, and open only to who has read the keys in the ranks' folder (mode 0700). The folder lies on a file system
that all nodes share.
"""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import ranks_python
from course_utils.ranks.processes.launch_ranks import environment_of, launch_controller, mpi_library
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.addresses import address, ports
from course_utils.ranks.slurm.hub import hub_file
from course_utils.ranks.slurm.job_environment import environment_for_new_job
from course_utils.ranks.slurm.job_names import name_options
from course_utils.ranks.slurm.job_sentences import rejection_text, silence_text
from course_utils.ranks.slurm.node_trial import trial_lines
from course_utils.ranks.slurm.slurm_commands import Silence, ask_slurm
from course_utils.words import count, join

_SUBMIT_SECONDS = 60.0
"""How long sbatch may take: it tries again where the controller is busy, and says so itself where it is silent."""
_HUB_SECONDS, _HUB_SECONDS_AFTER_WORDS = 60.0, 10.0
"""How long the hub may take to listen; and once it has written something, which is mostly an error."""
_PLUGINS = {"MPICH": ("pmi2", "cray_shasta", "pmix"), "Open MPI": ("pmix", "pmi2")}
"""What srun may tell the ranks of an MPI of each other with, the best first. Others are taken for made from MPICH."""
_GB_BESIDE_A_GPU = 8  # of a node's own memory, for a process with CUDA, NCCL and torch


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


def launch(folder: RanksFolder, job: Job) -> None:
    """Start the controller and the hub beside the notebook, and hand the job in once the hub listens.

    Raises:
        CourseError: Slurm does not answer, or no node could reach this machine, or the hub does not start; as `submit`.
    """
    if silence := (answer := ask_slurm("sinfo", "--noheader")).silence:
        raise CourseError(silence_text(silence, answer.words, "sinfo"))
    own_address = address()
    own = {**environment_of(folder, job.cores_per_rank or 1), settings.ADDRESS.name: own_address}
    for_engines, for_the_hub = ports(own_address)
    options = [f"--ip={own_address}", "--IPController.enable_curve=True"]
    if for_engines:
        options.append(f"--IPController.engine_ports={','.join(map(str, for_engines))}")
    hub = ("course_utils.ranks.slurm.hub", own_address, *map(str, for_the_hub))
    launch_controller(folder, {**os.environ, **own}, *options, watchdog=hub)
    script = job_script(folder, own, mpi_plugin())
    _wait_for_the_hub(folder)
    submit(folder, job, script)


def _wait_for_the_hub(folder: RanksFolder) -> None:
    """Wait until the hub has written down where it listens.

    Raises:
        CourseError: it does not; with what it wrote.
    """
    began, log = time.monotonic(), folder.path / "watch.log"
    while not hub_file(folder).exists():
        wrote = log.read_text(errors="replace").strip() if log.exists() else ""
        if time.monotonic() - began > (_HUB_SECONDS_AFTER_WORDS if wrote else _HUB_SECONDS):
            last = f" What it wrote last: {wrote.splitlines()[-1]}" if wrote else ""
            raise CourseError(f"The hub, a process that the nodes connect to, did not start on this machine.{last}")
        time.sleep(0.02)


def job_script(folder: RanksFolder, environment: Mapping[str, str], plugin: str) -> str:
    """The script of the job: it tries the nodes, and then starts a node agent for each rank.

    Its output goes into the ranks' folder once that is known to be there.

    Args:
        environment: of all that runs in the job.
        plugin: by which srun tells ranks of each other.
    """
    node_agent = [ranks_python(), "-P", "-m", "course_utils.ranks.slurm.node_agent", str(folder.path)]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())]
    srun = ["srun", "--export=ALL", f"--mpi={plugin}", "--kill-on-bad-exit=0", "--cpu-bind=none", *node_agent]
    log = shlex.quote(str(folder.path / "ranks.log"))
    trial = trial_lines(folder.path, ranks_python())
    return "\n".join(
        ["#!/bin/sh", "umask 077", *exports, *trial, f"exec >> {log} 2>&1", f"exec {shlex.join(srun)}", ""]
    )


def submit(folder: RanksFolder, job: Job, script: str) -> str:
    """Hand the job in; returns its number, which the folder keeps with the command that ends it.

    A job that is put back into the queue after a node has failed would start its ranks again, for a notebook that has
    given them up: hence `--no-requeue`.

    Raises:
        CourseError: no Slurm here, or it does not answer, or rejects the job; its own words are in the message.
    """
    file = folder.path / "job.sh"
    file.write_text(script)
    options = ["--parsable", "--export=ALL", "--no-requeue", "--output=/dev/null", *name_options(os.environ)]
    command = ["sbatch", *options, *job.options(), str(file)]
    answer = ask_slurm(*command, seconds=_SUBMIT_SECONDS, environment=environment_for_new_job(os.environ))
    number = answer.output.strip().split(";")[0] if answer.accepted else ""
    if answer.silence and answer.silence is not Silence.MISSING:
        number = _number_of(file)  # it may have been handed in all the same
    if not number:
        raise CourseError(silence_text(answer.silence, answer.words) if answer.silence else rejection_text(answer))
    folder.write_facts(job=number, end_with=["scancel", "--quiet", number])
    return number


def _number_of(script: Path) -> str:
    """The number of the job with this script; "" where there is none, or nobody answers."""
    rows = ask_slurm("squeue", "--me", "--noheader", "--format=%i %o").output.splitlines()
    return next((number for number, _, command in (row.partition(" ") for row in rows) if command == str(script)), "")

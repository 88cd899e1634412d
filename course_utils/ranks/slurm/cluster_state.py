"""Whether Slurm would take a job of the course now: it answers, a partition is open, a node is up, nothing is missing.

No job is handed in: `sbatch --test-only` says what would become of one.
"""

import os
from dataclasses import dataclass
from enum import StrEnum

from course_utils.ranks.slurm.job_environment import environment_for_new_job
from course_utils.ranks.slurm.job_status import NodeState, node_states
from course_utils.ranks.slurm.slurm_commands import ANSWER_SECONDS, SlurmAnswer, ask_slurm


class ClusterHealth(StrEnum):
    """What Slurm would do with a job."""

    TAKES_JOBS = "takes jobs"
    SILENT = "silent"
    NO_PARTITION = "no partition"
    """No partition is open to jobs, or none may be seen by this user."""
    NO_NODE = "no node"
    """No node of an open partition is up."""
    REJECTS = "rejects"
    """It would reject even the smallest job, for want of an account for example."""


@dataclass(frozen=True)
class ClusterState:
    """What Slurm says of itself.

    Attributes:
        health: the decision.
        version: of Slurm, such as "22.05.8".
        open: the partitions that start jobs.
        closed: the others, with their state.
        nodes: of the open partitions.
        answer: of the command that decided.
    """

    health: ClusterHealth
    version: str = ""
    open: tuple[str, ...] = ()
    closed: tuple[tuple[str, str], ...] = ()
    nodes: tuple[NodeState, ...] = ()
    answer: SlurmAnswer = SlurmAnswer()

    @property
    def nodes_up(self) -> int:
        """How many nodes take jobs."""
        return sum(node.takes_jobs for node in self.nodes)


def cluster_state(seconds: float = ANSWER_SECONDS) -> ClusterState:
    """Ask Slurm.

    Args:
        seconds: that each of three commands may take.
    """
    version = "".join(ask_slurm("sbatch", "--version", seconds=seconds).output.split()[-1:])
    answer = ask_slurm("sinfo", "--noheader", "--format=%R|%a", seconds=seconds)
    if answer.silence or not answer.accepted:
        return ClusterState(ClusterHealth.SILENT, version, answer=answer)
    rows = [line.strip().partition("|") for line in answer.output.splitlines() if "|" in line]
    opened = tuple(dict.fromkeys(name for name, _, state in rows if state == "up"))
    closed = tuple(dict.fromkeys((name, state) for name, _, state in rows if state != "up"))
    if not opened:
        return ClusterState(ClusterHealth.NO_PARTITION, version, closed=closed)
    nodes = tuple(node_states("--partition", ",".join(opened)))
    if nodes and not any(node.takes_jobs for node in nodes):
        return ClusterState(ClusterHealth.NO_NODE, version, opened, closed, nodes)
    command = ["sbatch", "--test-only", "--nodes=1", "--ntasks=1", "--time=1", "--wrap=true"]
    tried = ask_slurm(*command, seconds=seconds, environment=environment_for_new_job(os.environ))
    health = ClusterHealth.TAKES_JOBS if tried.accepted else ClusterHealth.REJECTS
    return ClusterState(ClusterHealth.SILENT if tried.silence else health, version, opened, closed, nodes, tried)

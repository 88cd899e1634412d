"""What has become of a job, in Slurm's own words made values: its state, why it waits, why it is over.

Slurm's controller knows a job until `MinJobAge` after its end, five minutes by default. Then its database does, where
a site has one. Source: Slurm's squeue(1), "JOB STATE CODES" and "JOB REASON CODES"; scontrol(1); sacct(1).
"""

import re
import time
from dataclasses import dataclass, replace
from enum import StrEnum

from course_utils.ranks.slurm.slurm_commands import ask_slurm

FORGOTTEN = "FORGOTTEN"
"""The state of a job that neither the controller nor a database knows."""
UNANSWERED = "UNANSWERED"
"""The state of a job of which nobody could be asked."""
_DATABASE_SECONDS = 10.0
_POLL_SECONDS = 0.3


@dataclass(frozen=True)
class JobStatus:
    """A job, as Slurm sees it.

    Attributes:
        state: in Slurm's words, such as "RUNNING"; or one of the constants above.
        reason: why it waits or has failed, such as "Resources"; "" for none.
        nodes: on which it runs or ran, as Slurm writes them: "c[1-2]".
        partition: in which it is; "" where that is not known.
        exit_code: of its script, once that has ended.
    """

    state: str
    reason: str = ""
    nodes: str = ""
    partition: str = ""
    exit_code: int = 0


class EndCause(StrEnum):
    """Why a job is over, stands still, or will never begin."""

    TIME_LIMIT = "time limit"
    CANCELLED = "cancelled"
    NODE_DOWN = "node down"
    OUT_OF_MEMORY = "out of memory"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    SUSPENDED = "suspended"
    DEADLINE = "deadline"
    LAUNCH_FAILED = "launch failed"
    SCRIPT_ENDED = "script ended"
    FORGOTTEN = "forgotten"
    TOO_MUCH = "too much"
    """It asks for more than there is, or than its user may have."""
    TOO_LONG = "too long"
    ACCOUNT = "account"
    QOS = "qos"
    RESERVATION = "reservation"
    DEPENDENCY = "dependency"
    PARTITION_CLOSED = "partition closed"
    NO_NODE_UP = "no node up"
    HELD_AFTER_FAILURES = "held after failures"


_OF_STATE = {
    "TIMEOUT": EndCause.TIME_LIMIT,
    "CANCELLED": EndCause.CANCELLED,
    "REVOKED": EndCause.CANCELLED,
    "NODE_FAIL": EndCause.NODE_DOWN,
    "BOOT_FAIL": EndCause.NODE_DOWN,
    "OUT_OF_MEMORY": EndCause.OUT_OF_MEMORY,
    "PREEMPTED": EndCause.PREEMPTED,
    "DEADLINE": EndCause.DEADLINE,
    "FAILED": EndCause.SCRIPT_ENDED,
    "COMPLETED": EndCause.SCRIPT_ENDED,
    "LAUNCH_FAILED": EndCause.LAUNCH_FAILED,
    "RECONFIG_FAIL": EndCause.LAUNCH_FAILED,
    "RESV_DEL_HOLD": EndCause.RESERVATION,
    FORGOTTEN: EndCause.FORGOTTEN,
}
"""States in which a job is over. While COMPLETING hides them, the reason may tell."""
_OF_REASON = {
    r"TimeLimit": EndCause.TIME_LIMIT,
    r"NodeDown": EndCause.NODE_DOWN,
    r"OutOfMemory": EndCause.OUT_OF_MEMORY,
    r"JobLaunchFailure|SystemFailure": EndCause.LAUNCH_FAILED,
    r"BadConstraints": EndCause.TOO_MUCH,
    r"(Partition|QOS|Assoc)\w*(TimeLimit|WallDuration\w*)": EndCause.TOO_LONG,
    r"InvalidAccount|AccountNotAllowed": EndCause.ACCOUNT,
    r"InvalidQOS|QOSNotAllowed": EndCause.QOS,
}
_NEVER = {
    r"Partition(Config|NodeLimit)|BadConstraints|AssociationJobLimit|QOS(JobLimit|Min\w+)|MaxMemPerLimit": (
        EndCause.TOO_MUCH
    ),
    r"(Assoc|QOS)Max(?!Wall)\w+Per(Job|Node)(Limit)?": EndCause.TOO_MUCH,
    r"PartitionTimeLimit|(Assoc|QOS)MaxWallDurationPerJob(Limit)?": EndCause.TOO_LONG,
    r"InvalidAccount|AccountNotAllowed": EndCause.ACCOUNT,
    r"InvalidQOS|QOSNotAllowed": EndCause.QOS,
    r"Reservation(Deleted|Invalid)|InvalidReservation": EndCause.RESERVATION,
    r"DependencyNeverSatisfied": EndCause.DEPENDENCY,
    r"Partition(Down|Inactive)": EndCause.PARTITION_CLOSED,
    r"JobHoldMaxRequeue|launch_failed_requeued_held": EndCause.HELD_AFTER_FAILURES,
}
"""Reasons for which a job waits that no other job's end takes away."""
_NODES_MISSING = re.compile(r"ReqNodeNotAvail|Nodes?_?[Dd]own|Nodes_required_for_job_are_DOWN|NodeDown")
_STANDS_STILL = ("SUSPENDED", "STOPPED")
_WAITS = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")


@dataclass(frozen=True)
class JobEnd:
    """Why a job is over, stands still, or will never begin.

    Attributes:
        number: of the job.
        cause: the decision.
        status: what Slurm says of it.
        nodes_down: node → why, as an administrator or Slurm has written it; "" for no reason.
    """

    number: str
    cause: EndCause
    status: JobStatus
    nodes_down: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NodeState:
    """A node, as `sinfo` lists it.

    Attributes:
        name: of the node.
        state: such as "idle"; with a star, as "down*", for one that has not answered lately.
        reason: why it is not in use, as somebody has written it; "" for none.
    """

    name: str
    state: str
    reason: str = ""

    @property
    def takes_jobs(self) -> bool:
        """Whether jobs may start on it, now or when others have ended."""
        return not re.match(r"down|drain|fail|maint|unknown|error|inval|blocked|perfctrs|future", self.state)

    @property
    def is_down(self) -> bool:
        """Whether what ran on it is lost."""
        return self.state.startswith(("down", "fail"))


def status_of(number: str) -> JobStatus:
    """What Slurm says of a job now."""
    answer = ask_slurm("scontrol", "show", "job", number)
    if answer.accepted and "JobState=" in answer.output:
        fields = dict(re.findall(r"\b(JobState|Reason|NodeList|Partition|ExitCode)=(\S+)", answer.output))
        return JobStatus(
            fields["JobState"],
            _known(fields.get("Reason", "")).rstrip(","),
            _known(fields.get("NodeList", "")),
            _known(fields.get("Partition", "")),
            int(fields.get("ExitCode", "0").partition(":")[0]),
        )
    if not answer.accepted and "Invalid job id" not in answer.words:
        return JobStatus(UNANSWERED)
    return _recorded(number)


def _known(value: str) -> str:
    return "" if value in ("None", "(null)", "N/A", "None assigned") else value


def _recorded(number: str) -> JobStatus:
    """What Slurm's database says of a job that the controller has forgotten."""
    command = ["sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={number}"]
    answer = ask_slurm(
        *command, "--format=State%30,Reason%60,NodeList%200,Partition%60,ExitCode", seconds=_DATABASE_SECONDS
    )
    if answer.accepted and (lines := answer.output.splitlines()):
        state, reason, nodes, partition, exit_code = (lines[-1].split("|") + [""] * 5)[:5]
        if state:  # "CANCELLED by 1000"
            code = exit_code.partition(":")[0]
            first = state.split()[0]
            return JobStatus(first, _known(reason), _known(nodes), partition, int(code) if code.isdigit() else 0)
    return JobStatus(FORGOTTEN)


def end_of(number: str, has_begun: bool = False) -> JobEnd | None:
    """Why a job is over, stands still, or will never begin; None while it waits or runs, or nobody could be asked.

    Args:
        has_begun: its ranks were there already, so if it waits now, it was put back into the queue.
    """
    return end_of_status(number, status_of(number), has_begun)


def end_of_status(number: str, status: JobStatus, has_begun: bool = False) -> JobEnd | None:
    """The same of a job whose status is known."""
    cause = _cause_of(status, has_begun)
    if cause is None and status.state == "PENDING" and _NODES_MISSING.match(status.reason):
        nodes = nodes_of(status.partition) if status.partition else []
        if nodes and not any(node.takes_jobs for node in nodes):
            missing = tuple((node.name, node.reason) for node in nodes)
            return JobEnd(number, EndCause.NO_NODE_UP, status, missing)
    if cause is None:
        return None
    if cause is EndCause.CANCELLED and not has_begun and (reason := _prolog_error(status.nodes)):
        return JobEnd(number, EndCause.LAUNCH_FAILED, replace(status, reason=reason))
    down = nodes_down(status.nodes) if cause is EndCause.NODE_DOWN else ()
    return JobEnd(number, cause, status, down)


def _prolog_error(nodes: str) -> str:
    """What Slurm has written down for a node whose prolog has failed; "" for none.

    It drains that node, and cancels the job if that may not be put back into the queue.
    """
    listed = node_states("--nodes", nodes) if nodes else []
    return next((node.reason for node in listed if node.reason.startswith("Prolog error")), "")


def _cause_of(status: JobStatus, has_begun: bool) -> EndCause | None:
    if status.state in ("FAILED", "COMPLETING"):
        found = next((cause for pattern, cause in _OF_REASON.items() if re.fullmatch(pattern, status.reason)), None)
        if found or status.state == "COMPLETING":
            return found
    if status.state in _STANDS_STILL:
        return EndCause.SUSPENDED
    if status.state in _WAITS:
        if has_begun:
            return EndCause.REQUEUED
        return next((cause for pattern, cause in _NEVER.items() if re.fullmatch(pattern, status.reason)), None)
    return _OF_STATE.get(status.state)


def wait_for_end(number: str, seconds: float) -> JobEnd | None:
    """Why a job whose ranks were there has ended, once Slurm says so; None where it does not.

    Args:
        seconds: for which it is asked at most.
    """
    deadline = time.monotonic() + seconds
    while not (end := end_of(number, has_begun=True)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return end


def with_node_down(end: JobEnd, named: str) -> JobEnd:
    """The same with a node named that Slurm has taken from the job already, or that is up again."""
    return replace(end, nodes_down=end.nodes_down or nodes_down(named) or ((named, ""),))


def nodes_down(nodes: str) -> tuple[tuple[str, str], ...]:
    """(name, reason) of each of these nodes that is down now, and the reason that is written down for it."""
    if not nodes:
        return ()
    listed = node_states("--nodes", nodes)
    return tuple((node.name, node.reason) for node in listed if node.is_down)


def nodes_of(partition: str) -> list[NodeState]:
    """The nodes of a partition, or of several with commas between; empty where nobody answers."""
    return node_states("--partition", partition)


def node_states(option: str, value: str) -> list[NodeState]:
    """The nodes that `sinfo` lists with this option, each once; empty where nobody answers."""
    answer = ask_slurm("sinfo", "--noheader", "--Node", f"{option}={value}", "--format=%N|%T|%E")
    rows = [line.strip().split("|", 2) for line in answer.output.splitlines() if line.count("|") >= 2]
    found = {name: NodeState(name, state, "" if reason == "none" else reason) for name, state, reason in rows}
    return list(found.values())

"""What is said of Slurm, its jobs and their nodes: each decision of the other modules in a line or two."""

import re
import signal
from collections.abc import Sequence

from course_utils.ranks.slurm.cluster_state import ClusterHealth, ClusterState
from course_utils.ranks.slurm.job_status import UNANSWERED, EndCause, JobEnd, JobStatus
from course_utils.ranks.slurm.node_trial import NodeFinding, NodeTrouble
from course_utils.ranks.slurm.slurm_commands import Silence, SlurmAnswer
from course_utils.words import count, join, ranks_in_words

MORE_MEMORY = '`course.start(…, memory="64G")` asks for more on each node'
_SHARED = "`export COURSE_SHARED=…`, before JupyterLab starts, names a folder that all nodes share"

# --- Slurm does not answer -------------------------------------------------------------------------------------------

_SILENCE = {
    Silence.MISSING: (
        "There is no Slurm here (no {program})",
        "`course.start(4)` uses this machine. At many centres `module load slurm` brings Slurm's commands",
    ),
    Silence.CONTROLLER: (
        "Slurm's controller (slurmctld) does not answer",
        "Try `sinfo`. If that fails as well, only the centre's staff can help",
    ),
    Silence.CREDENTIALS: (
        "Slurm cannot tell who asks, because munge does not work on this machine, or the clocks of the machines differ",
        "Only the centre's staff can mend that. `munge -n | unmunge` shows what is wrong",
    ),
    Silence.CONFIGURATION: (
        "Slurm's commands do not find their configuration, or the controller that it names",
        "`export SLURM_CONF=…` names the file, if it is not in its usual place. Is this a machine of the cluster?",
    ),
}


def silence_text(silence: Silence, words: str = "", program: str = "sbatch") -> str:
    """Why Slurm has not answered, and what to do."""
    why, remedy = silence_clauses(silence, words, program)
    return f"{why}. {remedy}{'' if remedy.endswith('?') else '.'}"


def silence_clauses(silence: Silence, words: str = "", program: str = "sbatch") -> tuple[str, str]:
    """Why Slurm has not answered, with its own words if it has written any; and what to do."""
    why, remedy = _SILENCE[silence]
    own = words.splitlines()[-1].rstrip(".") if words else ""
    return f"{why.format(program=program)}{f': {own}' if own else ''}", remedy


# --- Slurm rejects a job ---------------------------------------------------------------------------------------------

_ACCOUNT = (
    "`export SBATCH_ACCOUNT=…` names yours, and `sacctmgr show assoc user=$USER format=account,partition` lists them"
)
_PARTITION = "`sinfo` lists the partitions. `course.start(…, partition=…)` or `export SBATCH_PARTITION=…` chooses one"
_QOS = "`export SBATCH_QOS=…` names another, and `sacctmgr show assoc user=$USER format=account,qos` lists yours"
_RESERVATION = "`scontrol show reservation` lists those that there are. `unset SBATCH_RESERVATION` asks for none"
_LIMITS = "`sacctmgr show qos` and `sacctmgr show assoc user=$USER` list the limits, `squeue --me` your other jobs"
_MINUTES = "`course.start(…, minutes=…)` asks for less, and `sinfo --format='%P %l'` lists the limits"
_NODES = "`sinfo --Node --long` lists the nodes with their cores, memory and state"
_REJECTED_FOR = {
    r"[Ii]nvalid account": _ACCOUNT,
    r"[Ii]nvalid qos": _QOS,
    r"[Ii]nvalid partition|not permitted to use this partition|Required partition not available": _PARTITION,
    r"[Rr]eservation is invalid|[Rr]eservation not usable|not permitted .* reservation": _RESERVATION,
    r"accounting/QOS policy|Job size specification|job submit limit": _LIMITS,
    r"time limit is invalid": _MINUTES,
    r"node configuration is not available|Memory specification|[Ii]nvalid feature|More processors|Node count": _NODES,
    r"Access/permission denied|Invalid user id": "Ask your centre whether you may hand in jobs on this machine",
}
"""sbatch's own words → what to do. What a site's plugin writes stands as it is."""


def rejection_text(answer: SlurmAnswer) -> str:
    """What sbatch has written against a job, and what to do about it."""
    words, remedy = rejection_clauses(answer)
    return f"Slurm rejected the job: {words}{f' {remedy}.' if remedy else ''}"


def rejection_clauses(answer: SlurmAnswer) -> tuple[str, str]:
    """What sbatch has written against a job, in sentences; and what to do, "" where that is not known."""
    words = " ".join(line.rstrip(".") + "." for line in (answer.words or answer.output).splitlines() if line.strip())
    remedy = next((text for pattern, text in _REJECTED_FOR.items() if re.search(pattern, words)), "")
    return words or "it gives no reason.", remedy


# --- whether Slurm takes jobs ---------------------------------------------------------------------------------------


def cluster_text(state: ClusterState) -> tuple[str, str]:
    """What the doctor says of Slurm, and what to do; both end without a full stop."""
    match state.health:
        case ClusterHealth.SILENT if state.answer.silence:
            return silence_clauses(state.answer.silence, state.answer.words, "sinfo")
        case ClusterHealth.SILENT:
            return f"sinfo fails: {' '.join(state.answer.words.split()).rstrip('.')}", "Ask your centre's staff"
        case ClusterHealth.NO_PARTITION:
            states = ", ".join(f"{name} is {found}" for name, found in state.closed)
            return f"no partition starts jobs now{f': {states}' if states else ''}", "Ask your centre's staff"
        case ClusterHealth.NO_NODE:
            reasons = _reasons([(node.name, node.reason) for node in state.nodes])
            return f"no node is up: {reasons}", "`sinfo -R` tells since when. Ask your centre's staff"
        case ClusterHealth.REJECTS:
            words, remedy = rejection_clauses(state.answer)
            return f"{state.version} rejects every job: {words.rstrip('.')}", remedy
    up = f"{state.nodes_up} of {count(len(state.nodes), 'node')} up"
    return f"{state.version} takes jobs, {up}, in {join(state.open)}", ""


# --- a job waits -----------------------------------------------------------------------------------------------------

_WAITS_FOR = {
    r"ReqNodeNotAvail|Nodes?_?Down|Nodes_required": "its nodes are down or reserved; `sinfo -R` tells why",
    r"Reserved": "its nodes are reserved for maintenance; `scontrol show reservation` tells until when",
    r"(Assoc|QOS)Max\w+Per(User|Account)\w*": "your other jobs use all that you may have at a time: `squeue --me`",
    r"(Assoc|QOS)Grp\w+": "your group's jobs use all that it may have at a time: `squeue -A …` lists them",
    r"JobHeldUser": "it is held; `scontrol release {number}` releases it",
    r"JobHeldAdmin": "it is held by the centre's staff, who alone can release it",
    r"Licenses": "other jobs use the licences that it asks for",
    r"Reservation": "its reservation has not begun, or other jobs fill it; `scontrol show reservation` tells",
    r"Dependency": "it waits for another job",
    r"BeginTime": "its time to begin has not come",
    r"Prolog": "the nodes are being prepared for it",
}
"""Reasons whose names alone do not tell what to do."""
_STATE_TEXT = {UNANSWERED: "is not heard of now", "SUSPENDED": "is suspended"}


def waiting_text(number: str, status: JobStatus) -> str:
    """What a job is waiting for, for a progress bar."""
    if status.state != "PENDING":
        return f"Slurm's job {number} {_STATE_TEXT.get(status.state, 'starts')}"
    meant = next((text for pattern, text in _WAITS_FOR.items() if re.match(pattern, status.reason)), "")
    reason = f"{status.reason}: {meant.format(number=number)}" if meant else status.reason
    return f"Slurm's job {number} waits in the queue{f' ({reason})' if reason else ''}"


# --- a job is over ---------------------------------------------------------------------------------------------------

_OVER = {
    EndCause.TIME_LIMIT: "is over: its time was up: `course.start(…, minutes=…)` asks for more",
    EndCause.CANCELLED: "is over: it was cancelled with scancel",
    EndCause.OUT_OF_MEMORY: f"is over: it took more memory than it may use: {MORE_MEMORY}",
    EndCause.PREEMPTED: "is over: a job with a higher priority took its nodes (PREEMPTED)",
    EndCause.DEADLINE: "is over: its deadline has passed (DEADLINE)",
    EndCause.REQUEUED: "was put back into the queue, which has ended its ranks (requeued)",
    EndCause.SUSPENDED: (
        "is suspended, so its ranks stand still and do not answer. They keep their variables. "
        "`scontrol resume {number}`, or Slurm by itself, lets them go on: then run this cell again"
    ),
    EndCause.LAUNCH_FAILED: (
        "is over: Slurm could not start it{on_nodes} ({reason}). A prolog of the site's may have failed, or the node "
        "does not know you: only the centre's staff can read why in the node's log"
    ),
    EndCause.SCRIPT_ENDED: "is over: its script has ended ({words})",
    EndCause.FORGOTTEN: "is over, and Slurm no longer knows why, because it forgets old jobs",
    EndCause.TOO_MUCH: (
        "asks for more nodes, cores, memory, GPUs or minutes than there are, or than you may have ({reason}): `sinfo "
        "--long` shows what there is, "
        "`sacctmgr show qos` and `sacctmgr show assoc user=$USER` the limits of accounts"
    ),
    EndCause.TOO_LONG: (f"asks for more time than a job may take there ({{reason}}): {_MINUTES}"),
    EndCause.ACCOUNT: f"cannot begin under this account ({{reason}}): {_ACCOUNT}",
    EndCause.QOS: f"cannot begin with this quality of service ({{reason}}): {_QOS}",
    EndCause.RESERVATION: f"cannot begin, because its reservation has ended ({{reason}}): {_RESERVATION}",
    EndCause.DEPENDENCY: "cannot begin, because a job that it depends on has failed ({reason})",
    EndCause.PARTITION_CLOSED: (
        f"cannot begin, because the partition {{partition}} starts no jobs now ({{reason}}). {_PARTITION}"
    ),
    EndCause.NO_NODE_UP: f"cannot begin, because no node of the partition {{partition}} is up{{down}}. {_PARTITION}",
    EndCause.HELD_AFTER_FAILURES: (
        "is held, because its nodes could not start it ({reason}). A prolog of the site's may have failed: only the "
        "centre's staff can read why in the nodes' logs"
    ),
}


def end_text(end: JobEnd) -> str:
    """Why a job is over, stands still, or will never begin, in a sentence or two."""
    status, number = end.status, end.number
    if end.cause is EndCause.NODE_DOWN:
        state = "NODE_FAIL" if status.state == "COMPLETING" else status.state  # which hides the other for a while
        return f"Slurm's job {number} is over: {_down_clause(end)} ({state})."
    words = ", ".join(filter(None, (status.state, status.reason, f"exit code {status.exit_code}")))
    text = _OVER[end.cause].format(
        number=number,
        reason=status.reason or status.state,
        partition=status.partition or "of the job",
        on_nodes=f" on {status.nodes}" if status.nodes else "",
        words=words,
        down=f" ({_reasons(end.nodes_down)})" if any(reason for _, reason in end.nodes_down) else "",
    )
    return f"Slurm's job {number} {text}."


def _down_clause(end: JobEnd) -> str:
    """What is known of nodes that went down."""
    if not end.nodes_down:
        return f"one of its nodes went down ({end.status.nodes})" if end.status.nodes else "one of its nodes went down"
    names = join([name for name, _ in end.nodes_down])
    return f"{'node' if len(end.nodes_down) == 1 else 'nodes'} {names} went down{_reason_of(end.nodes_down)}"


def _reasons(nodes: Sequence[tuple[str, str]]) -> str:
    """Why nodes are not in use, each reason once, with its nodes."""
    of_reason: dict[str, list[str]] = {}
    for name, reason in nodes:
        of_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{join(names)}: {reason or 'no reason given'}" for reason, names in of_reason.items())


def silent_ranks_text(ranks: Sequence[int], nodes: Sequence[str], down: Sequence[tuple[str, str]], number: str) -> str:
    """What is known of ranks of which nothing is heard any more, while Slurm calls their job running.

    Args:
        nodes: on which they were.
        down: (name, reason) of those of the nodes that Slurm calls down.
    """
    who = f"{ranks_in_words(list(ranks))} on {join(nodes)} cannot be reached any more"
    if down:
        return f"{who}: Slurm calls {join([name for name, _ in down])} down{_reason_of(down)}."
    return f"{who}: the node has failed, or the network. Slurm has not noticed yet: it calls job {number} running."


def unexplained_end_text(number: str) -> str:
    """What is said of ranks that were told to end, where Slurm does not say why."""
    return f"Slurm has told it to end, but not said why: `scontrol show job {number}` may tell later."


def _reason_of(nodes: Sequence[tuple[str, str]]) -> str:
    reasons = [reason for _, reason in nodes if reason]
    return f": {reasons[0]}" if reasons else ""


# --- a trial of the nodes --------------------------------------------------------------------------------------------

_TROUBLE = {
    NodeTrouble.FOLDER_UNSEEN: "{nodes} {do} not see {shared}, where ranks keep their files. " + _SHARED,
    NodeTrouble.FOLDER_NOT_WRITABLE: "{nodes} {see} {shared}, where ranks keep their files, but cannot write there. "
    + _SHARED,
    NodeTrouble.PYTHON_MISSING: "{nodes} {do} not have the Python of this notebook, {detail}. Install the course, with "
    "its Python, in a folder that all nodes share: `make setup PYTHON=…` names the Python",
    NodeTrouble.PYTHON_FAILS: "The Python of this notebook does not run on {nodes}: {detail}{why}",
    NodeTrouble.HUB_FILE_MISSING: "{nodes} {see} {shared}, but a file that was written there, {detail}, has "
    "not come for half a minute. That file system is late, or at fault. " + _SHARED,
    NodeTrouble.NO_SUCH_INTERFACE: "COURSE_INTERFACE={interface} is no network interface of {nodes}: there is {detail}",
    NodeTrouble.UNREACHABLE: "{nodes} {do} not reach the notebook's machine at {detail}. Is there a firewall between "
    "them? Start the notebook on a compute node, or ask which ports are open: `export COURSE_PORTS=50000-50099`, "
    "before JupyterLab starts. Is it the wrong network? `export COURSE_ADDRESS=…` names a different address of the "
    "notebook's machine",
}
_VIOLENT: dict[int, str] = {
    signal.SIGILL: ". This processor lacks instructions that it was built for: choose nodes like the one on which the "
    "course was installed, with `partition=` for example",
    signal.SIGKILL: f". Was there too little memory? {MORE_MEMORY}",
}


def findings_text(findings: Sequence[NodeFinding], shared: str, interface: str) -> str:
    """What a trial of nodes has found, first what holds for most of them.

    Args:
        shared: the folder above the ranks', as people name it, such as "COURSE_SHARED=/scratch".
        interface: that was chosen for the nodes; "" for none.
    """
    alike: dict[tuple, list[NodeFinding]] = {}
    for finding in findings:
        detail = "" if finding.trouble is NodeTrouble.UNREACHABLE else finding.detail
        alike.setdefault((finding.trouble, detail, finding.status), []).append(finding)
    texts = []
    for group in sorted(alike.values(), key=len, reverse=True):
        first, names = group[0], [finding.node for finding in group if finding.node]
        several = len(names) != 1
        text = _TROUBLE[first.trouble].format(
            nodes=join(names) if names else "The nodes",
            do="do" if several else "does",
            see="see" if several else "sees",
            detail=first.detail or f"exit status {first.status}",
            why=_VIOLENT.get(first.status - 128, ""),
            shared=shared,
            interface=interface,
        )
        texts.append(f"{text}.")
    return " ".join(texts)

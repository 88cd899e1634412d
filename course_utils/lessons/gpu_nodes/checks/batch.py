"""A batch script as sbatch reads it, and as its shell runs it where `srun` and `scontrol` only note what they are told.

Where a Slurm answers, sbatch itself is asked (`--test-only`: it reads the script, looks for nodes, and starts nothing).
"""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_utils import settings
from course_utils.lessons.gpu_nodes.checks.slurm_options import SBATCH, SRUN, UnknownOption

SIGNALS = {"TERM": "SIGTERM", "SIGTERM": "SIGTERM", "15": "SIGTERM"}

SCRIPT, TEXT, READ = "the script", "its text", "sbatch's answer to the script"
NODES, TASKS, GPUS, CORES = (
    "the number of nodes",
    "the number of tasks on each node",
    "the number of GPUs on each node",
    "the number of cores of each task",
)
MINUTES, REQUEUE = "the number of minutes", "the permission to queue the job again"
SIGNAL, HEARD_BY, SECONDS = (
    "the signal",
    "the receiver of the signal",
    "the number of seconds from the signal to the end",
)
OPEN_MODE, OUTPUT, PARTITION, NAME = (
    "the value of --open-mode",
    "the file of the output",
    "the partition",
    "the job's name",
)
TOLD, ADDRESS, PORT, THREADS = "the command that srun starts", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"
MEMORY, REASON, FURTHER_RUN = "the memory of each node", "the reason", "run {}"
SRUN_CORES, OTHERS = "the number of cores that srun gives to each task", "the value of srun's --kill-on-bad-exit"
WAIT, EXPORT, STARTED = (
    "the value of srun's --wait",
    "the value of srun's --export",
    "the number of tasks that srun starts",
)
OWN = "srun's own options"
CODE, ASKED = "the exit code", "the list of scontrol's calls after srun"
NO_SLURM = "no Slurm"
UNANSWERED = re.compile("configuration source|[Cc]ontact|timed out|Zero Bytes|[Aa]uthentication|munge|standby")
"""What sbatch says where the fault lies between it and the controller, not in the script."""
ONE_TEXT, TAKEN, THE_TASKS, THE_SHELL = "one string", "yes", "the tasks", "the batch script alone"
FIRST, JOB = "gpu07", 10_007
ASKS_FOR_NONE = "a line that asks for none"
INSTEAD = {"requeue": ["no-requeue"], "no-requeue": ["requeue"], "tasks-per-node": ["ntasks-per-node"]}
"""Option → others that it takes the place of."""
OLDER_NAMES = {"tasks-per-node": "ntasks-per-node"}
"""Names that sbatch still knows."""
VARIABLES = {"SLURM_JOB_NAME": "job-name", "SLURM_JOB_PARTITION": "partition", "SLURM_CPUS_PER_TASK": "cpus-per-task"}
VARIABLES |= {"SLURM_NTASKS_PER_NODE": "ntasks-per-node", "SLURM_GPUS_PER_NODE": "gpus-per-node"}
"""Variable of a job → the option that Slurm sets it from, where the script has that option."""

SRUN_HERE = """#!/bin/sh
for value in "$MASTER_ADDR" "$MASTER_PORT" "$OMP_NUM_THREADS" "$SRUN_CPUS_PER_TASK" "$SLURM_WAIT"; do
  echo "$value" >> "$NOTES"
done
printf 'srun\\0' >> "$NOTES.srun"; printf '%s\\0' "$@" >> "$NOTES.srun"
exit "$STATUS"
"""
SCONTROL_HERE = """#!/bin/sh
if [ "$1" = show ]; then printf 'gpu07\\ngpu08\\ngpu09\\n'; else echo "$*" >> "$NOTES.scontrol"; fi
"""


class Rejected(ValueError):
    """sbatch would reject the script, or overlook a part of it.

    Attributes:
        key: names the reason.
    """

    def __init__(self, key: str, words: str) -> None:
        super().__init__(words)
        self.key = key


def options_of(text: str) -> dict[str, str]:
    """What the lines #SBATCH ask for: those before the first command, as sbatch reads them.

    Raises:
        Rejected: sbatch would reject the script; the text is what it would say.
    """
    if not text.startswith("#!"):
        words = "sbatch: error: This does not look like a batch script. The first line must start with #!"
        raise Rejected("no-batch-script", words)
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                asked, rest = SBATCH.read(shlex.split(line.removeprefix("#SBATCH"), comments=True))
            except UnknownOption as error:
                raise Rejected("unknown-option", str(error)) from error
            if rest:
                raise Rejected("unknown-option", f"sbatch: error: {rest[0]!r} is no option")
            for name, value in asked.items():
                # Of two lines with one option, or with two that exclude each other, the last one counts.
                for other in (name, *INSTEAD.get(name, ())):
                    found.pop(other, None)
                found[OLDER_NAMES.get(name, name)] = value
    return found


def read_to_the_end(text: str) -> None:
    """See to it that sbatch reads every line that is meant for it.

    Raises:
        Rejected: there are some below the line at which it stops reading.
    """
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    if any(line.strip().startswith("#SBATCH") for line in lines[first:]):
        raise Rejected("stops-reading", f"sbatch stops reading at line {first + 1}: {lines[first].strip()!r}")


def minutes_of(time: str) -> float:
    """The minutes that a time of Slurm's is: minutes, minutes:seconds, hours:minutes:seconds, days-hours, and so on.

    Raises:
        Rejected: it is no time.
    """
    if not re.fullmatch(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}", time):
        raise Rejected("no-time", f"sbatch: error: Invalid --time specification '{time}'")
    days, dash, rest = time.rpartition("-")
    numbers = [int(number) for number in rest.split(":")]
    if dash:  # the first is hours
        hours, minutes, seconds = (numbers + [0, 0])[:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, minutes, seconds = 0, numbers[0], (numbers + [0])[1]
    return 1440 * int(days or 0) + 60 * hours + minutes + seconds / 60


def asked_for(text: str) -> dict[str, Any]:
    """What the job is to have, in the words of the verdict."""
    options = options_of(text)
    least, _, most = options.get("nodes", "1").partition("-")
    nodes = number_in({"nodes": least}, "nodes")
    if most not in ("", least):
        raise Rejected("nodes-open", f"with --nodes={least}-{most}, Slurm may give the job {least} to {most} nodes")
    tasks = tasks_of(options, nodes)
    cores = number_in(options, "cpus-per-task", 1)
    found = {READ: TAKEN, NODES: nodes, TASKS: tasks, GPUS: gpus_of(options, nodes, tasks)}
    found |= {CORES: cores, MINUTES: minutes_of(options.get("time", "0"))}
    found |= signal_of(options.get("signal", "")) | {REQUEUE: "yes" if "requeue" in options else "not said"}
    found |= {OPEN_MODE: options.get("open-mode", "not said"), PARTITION: options.get("partition", "not said")}
    found[MEMORY] = memory_text(options, round(cores * tasks))
    name = options.get("job-name", "")
    found |= {NAME: name, OUTPUT: options.get("output", "slurm-%j.out").replace("%x", name)}
    return found


def variables_of(text: str) -> dict[str, str]:
    """The variables that Slurm gives this script's shell because of what it asks for."""
    options = options_of(text)
    asked = asked_for(text)
    nodes, tasks = asked[NODES], round(asked[NODES] * asked[TASKS])
    found = {variable: options[name] for variable, name in VARIABLES.items() if name in options}
    if "ntasks" in options or "ntasks-per-node" in options:
        found |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(tasks))
    if asked[GPUS] and isinstance(asked[GPUS], int):
        found["SLURM_GPUS_ON_NODE"] = str(asked[GPUS])
    return found | dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), str(nodes))


def number_in(options: Mapping[str, str], name: str, usual: int = 1) -> int:
    """The number that an option has; `usual` if it isn't there.

    Raises:
        Rejected: it is no number.
    """
    value = options.get(name, str(usual))
    if not value.isdecimal():
        raise Rejected("no-number", f'sbatch: error: Invalid numeric value "{value}" for --{name}.')
    return int(value)


def tasks_of(options: Mapping[str, str], nodes: int) -> int | float:
    """Tasks on each node. With `--ntasks`, `--ntasks-per-node` is only the most that a node may have.

    Raises:
        Rejected: there are more tasks than the nodes may have.
    """
    per_node = number_in(options, "ntasks-per-node", 0)
    if "ntasks" not in options:
        of_gpus = number_in(options, "ntasks-per-gpu", 0) * _number_of_gpus(options, nodes, 1)
        return per_node or of_gpus or 1
    total = number_in(options, "ntasks")
    if per_node and total > per_node * nodes:
        words = "sbatch: error: Batch job submission failed: Requested node configuration is not available"
        raise Rejected("more-tasks-than-nodes-take", words)
    return total // nodes if total % nodes == 0 else round(total / nodes, 2)


def gpus_of(options: Mapping[str, str], nodes: int, tasks: float) -> int | str:
    """On each node, from any of the options that ask for GPUs; in words where one of them asks for none.

    Raises:
        Rejected: two of them contradict each other.
    """
    _compare_gpus(options, nodes, tasks)
    found = _number_of_gpus(options, nodes, tasks)
    asked = any(name.startswith(("gpus", "gres")) for name in options)
    return ASKS_FOR_NONE if asked and not found else found


def _number_of_gpus(options: Mapping[str, str], nodes: int, tasks: float) -> int:
    return next((number for number in _gpus_on_a_node(options, nodes, tasks).values() if number), 0)


def _gpus_on_a_node(options: Mapping[str, str], nodes: int, tasks: float) -> dict[str, int]:
    """Option → how many GPUs each node has according to it."""
    number = {
        name: int(options[name].rpartition(":")[2]) for name in options if name.startswith("gpus-per") or name == "gpus"
    }
    found = {}
    if "gres" in options:
        found["gres"] = int((re.search(r"gpu(?::[a-z]\w*)?:(\d+)", options["gres"]) or [0, 1])[1])
    if "gpus-per-node" in number:
        found["gpus-per-node"] = number["gpus-per-node"]
    if "gpus-per-task" in number:
        found["gpus-per-task"] = round(number["gpus-per-task"] * tasks)
    if "gpus" in number:
        found["gpus"] = number["gpus"] // nodes
    return found


def _compare_gpus(options: Mapping[str, str], nodes: int, tasks: float) -> None:
    """Reject options that ask for different numbers of GPUs on a node, as Slurm does when it validates a job."""
    found = _gpus_on_a_node(options, nodes, tasks)
    if len({*found.values()}) > 1:
        each = " and ".join(f"{number} by --{name}" for name, number in found.items())
        words = f"sbatch: error: Failed to validate job spec. On each node, GPUs are asked for twice: {each}"
        raise Rejected("gpus-contradict", words)


def memory_text(options: Mapping[str, str], cores: int) -> str:
    """What is asked for, for each node; in words where it is for each GPU.

    Args:
        cores: of all tasks on a node.

    Raises:
        Rejected: it is asked for in two ways.
    """
    asked = [name for name in ("mem", "mem-per-cpu", "mem-per-gpu") if name in options]
    if len(asked) > 1:
        words = "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
        raise Rejected("memory-twice", words)
    if asked == ["mem-per-cpu"] and (found := re.fullmatch(r"(\d+)([A-Z]?)", options["mem-per-cpu"])):
        return f"{cores * int(found[1])}{found[2]}"
    return options[asked[0]] + " for each GPU" * (asked == ["mem-per-gpu"]) if asked else "not said"


def signal_of(value: str) -> dict[str, Any]:
    """Slurm's --signal, `[B:]NAME[@SECONDS]`: which, to whom, and how long before the end."""
    found = re.fullmatch(r"([BR]+:)?(\w+)(?:@(\d+))?", value)
    if not found:
        return {SIGNAL: "none"}
    who, name, seconds = found.groups()
    heard_by = THE_SHELL if "B" in (who or "") else THE_TASKS
    return {SIGNAL: SIGNALS.get(name, name), HEARD_BY: heard_by, SECONDS: int(seconds or 60)}


def run(text: str, status: int, job: int = JOB, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the script where srun ends with this exit code; return what srun and scontrol were told."""
    with tempfile.TemporaryDirectory(dir=settings.RANKS.value()) as name:
        folder = Path(name)
        for program, body in {
            "srun": SRUN_HERE,
            "scontrol": SCONTROL_HERE,
            "hostname": f"#!/bin/sh\necho {FIRST}\n",
        }.items():
            (folder / program).write_text(body)
            (folder / program).chmod(0o700)
        notes = folder / "notes"
        known = {"PATH": f"{folder}:{os.environ['PATH']}", "NOTES": str(notes), "STATUS": str(status), "HOME": name}
        known |= {"SLURM_JOB_ID": str(job), "SLURM_JOBID": str(job), "SLURM_JOB_NODELIST": "gpu[07-09]"}
        known |= {"SLURM_NODELIST": "gpu[07-09]", "SLURMD_NODENAME": FIRST, "SLURM_SUBMIT_DIR": name}
        # A login shell would set PATH anew, and find another srun, or none.
        (folder / "job.sh").write_text(re.sub(r"\A(#!\S+) +(-l|--login) *$", r"\1", text, flags=re.MULTILINE))
        (folder / "job.sh").chmod(0o700)
        ended = subprocess.run(
            [folder / "job.sh"],
            cwd=folder,
            env={**known, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        return {**noted(notes), CODE: ended.returncode, ASKED: lines_of(Path(f"{notes}.scontrol"))}


def noted(notes: Path) -> dict[str, Any]:
    """What srun was told, by its arguments and by variables; srun's own options are taken off."""
    if not notes.exists():
        return {TOLD: "the script ended without calling srun"}
    address, port, threads, cores, wait = notes.read_text().splitlines()[:5]
    words = Path(f"{notes}.srun").read_bytes().decode().split("\0")[1:-1]
    try:
        own, words = SRUN.read(words)
    except UnknownOption as error:
        return {TOLD: str(error)}
    for name in ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task"):
        if not re.fullmatch(r"\d+(-\d+)?", value := own.get(name, "1")):
            return {TOLD: f'srun: error: Invalid numeric value "{value}" for --{name}.'}
    others = own.get("kill-on-bad-exit", "not said") or "1"
    found = {TOLD: words, ADDRESS: address or None, PORT: port, THREADS: threads or None, OWN: own, OTHERS: others}
    return found | {SRUN_CORES: int(own.get("cpus-per-task", cores) or 1), WAIT: own.get("wait", wait) or "not said"}


def tasks_started(own: Mapping[str, str], nodes: int, tasks: int) -> int:
    """How many tasks srun starts in a job of so many nodes, each with so many tasks: its own options come first."""
    on_nodes = int(own.get("nodes", str(nodes)).partition("-")[0])
    return int(own.get("ntasks") or on_nodes * int(own.get("ntasks-per-node", tasks)))


def lines_of(file: Path) -> list[str]:
    """Its lines; none where it is not there."""
    return file.read_text().splitlines() if file.exists() else []


def tried(function: Callable, command: str, options: Mapping[str, Any], runs: Sequence[tuple]) -> dict[str, Any]:
    """Call the learner's function; return what its script asks for, and what each run of it told srun.

    What the first run told is in the dictionary itself, what each further one told in a dictionary of its own.

    Args:
        runs: arguments of `run` after the text.
    """
    text = function(command, **options)
    if not isinstance(text, str):
        return {SCRIPT: text}
    found = {SCRIPT: ONE_TEXT, TEXT: text}
    try:
        found |= asked_for(text)
        read_to_the_end(text)
    except ValueError as rejected:
        return found | {READ: str(rejected), REASON: rejected.key if isinstance(rejected, Rejected) else "no-number"}
    for number, (status, job, environment) in enumerate(runs):
        seen = run(text, status, job, variables_of(text) | environment)
        if (own := seen.pop(OWN, None)) is not None:
            seen |= {STARTED: tasks_started(own, found[NODES], found[TASKS]), EXPORT: own.get("export", "not said")}
        found |= {FURTHER_RUN.format(number): seen} if number else seen
    return found


def taken_by_slurm(function: Callable, command: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a Slurm here has an opinion of the learner's script, and which: "yes", or its own words.

    A rejection counts only where the same Slurm takes the plainest script: a busy or unset controller rejects all.
    """
    rejection = said_by_sbatch(function(command, **options))
    if rejection is None:
        return True, TAKEN
    of_the_plainest = said_by_sbatch("#!/bin/sh\n#SBATCH --nodes=1 --time=5\ntrue\n")
    if rejection != NO_SLURM and of_the_plainest is None:
        return True, rejection
    return False, of_the_plainest or rejection


def said_by_sbatch(text: str) -> str | None:
    """What sbatch says against a script: `NO_SLURM` where no controller answered, None where it takes the script."""
    try:
        asked = subprocess.run(
            ["sbatch", "--test-only"], input=text, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return NO_SLURM
    if asked.returncode == 0:
        return None
    lines = asked.stderr.strip().splitlines() or ["sbatch: error"]
    return NO_SLURM if UNANSWERED.search(asked.stderr) else lines[0]

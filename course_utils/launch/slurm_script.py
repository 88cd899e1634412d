"""The batch script that starts one program on n nodes × g GPUs."""

import re

from course_utils.errors import CourseError
from course_utils.launch.stopping import TRY_AGAIN

_BODY = """
export MASTER_ADDR=${{MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}}
export MASTER_PORT=${{MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}}
export OMP_NUM_THREADS={cores_per_task}

srun --kill-on-bad-exit=0 --wait=30 --cpus-per-task={cores_per_task} {command}
status=$?
if [ "$status" -eq {try_again} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""


def slurm_script(
    command: str,
    *,
    nodes: int = 1,
    gpus_per_node: int = 0,
    tasks_per_node: int | None = None,
    cores_per_task: int = 1,
    minutes: int = 60,
    warn_seconds: int = 60,
    partition: str | None = None,
    name: str = "train",
) -> str:
    """A script for sbatch: one task for each GPU, started by srun, stopped in time, and queued again until it is done.

    It tells all tasks where rank 0 waits: MASTER_ADDR is the first node, MASTER_PORT follows from
    the job's number; what stands in the environment already is kept. `warn_seconds` before the time
    is up, Slurm sends SIGTERM to the tasks. When they end with exit code 75, the script asks
    for a requeue; the job keeps its number, and its output goes on in the same file. When one task
    ends, the others have 30 s to do so too: with --kill-on-bad-exit=1 the first 75 would kill them.

    Args:
        command: what every task runs, such as "python train.py --epochs 20".
        nodes: how many.
        gpus_per_node: 0 for none.
        tasks_per_node: as many as GPUs unless told otherwise, and one where there are none.
        cores_per_task: for each task; also given to srun, which does not inherit it from sbatch.
        minutes: after which Slurm ends the job.
        warn_seconds: for the checkpoint. Slurm may send the signal up to a minute earlier.
        partition: the site's default without.

    Raises:
        CourseError: a number cannot be meant, or the time is up before the warning is due.

    Source: Slurm's sbatch(1), --signal, --requeue, --open-mode; srun(1), --wait and --kill-on-bad-exit.
    """
    if gpus_per_node < 0:
        raise CourseError(f"slurm_script: gpus_per_node is at least 0, not {gpus_per_node}.")
    tasks_per_node = (gpus_per_node or 1) if tasks_per_node is None else tasks_per_node
    numbers = {"nodes": nodes, "tasks_per_node": tasks_per_node, "cores_per_task": cores_per_task, "minutes": minutes}
    for what, value in numbers.items():
        if value < 1:
            raise CourseError(f"slurm_script: {what} is at least 1, not {value}.")
    if not 0 < warn_seconds < 60 * minutes:
        raise CourseError(f"slurm_script: {warn_seconds} s before the end of {minutes} min is no time in between.")
    for what in (name, partition):
        if what is not None and not re.fullmatch(r"[\w.,+-]+", what):
            raise CourseError(f"slurm_script: {what!r} has signs that no name has.")
    options = {
        "job-name": name,
        "partition": partition,
        "nodes": nodes,
        "ntasks-per-node": tasks_per_node,
        "gpus-per-node": gpus_per_node or None,
        "cpus-per-task": cores_per_task,
        "time": minutes,
        "signal": f"TERM@{warn_seconds}",
        "requeue": "",
        "open-mode": "append",
        "output": "%x-%j.out",
    }
    lines = [f"#SBATCH --{key}={value}".rstrip("=") for key, value in options.items() if value is not None]
    body = _BODY.format(cores_per_task=cores_per_task, command=command, try_again=TRY_AGAIN)
    return "\n".join(["#!/bin/bash", *lines, body])

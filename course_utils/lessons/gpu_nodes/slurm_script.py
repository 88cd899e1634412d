"""The batch script that starts one program on n nodes × g GPUs."""

import re
from collections.abc import Sequence

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.stop_signals import TRY_AGAIN


def slurm_script(
    command: str,
    *,
    nodes: int = 1,
    gpus_per_node: int = 0,
    tasks_per_node: int | None = None,
    cores_per_task: int = 1,
    memory: str | None = None,
    minutes: int = 60,
    warn_seconds: int = 60,
    partition: str | None = None,
    name: str = "train",
) -> str:
    """A script for sbatch: one task for each GPU, started by srun, stopped in time, and queued
    again until it is done.

    What sbatch is asked for stands in lines `#SBATCH --option=value` below the first,
    `#!/bin/bash`. The output goes to `NAME-NUMBER.out` (%x-%j), and on in the same file when the
    job is queued again (--open-mode=append).

    All tasks find rank 0 through two variables: MASTER_ADDR is the first node, MASTER_PORT a port
    from 20000 on that follows from the job's number. What stands in the environment already is
    kept. OMP_NUM_THREADS is the number of a task's cores.

    `warn_seconds` before the time is up, Slurm sends SIGTERM to the tasks (--signal). When srun
    then ends with exit code 75, TRY_AGAIN, the script asks for a requeue (--requeue allows it;
    `scontrol requeue`); the job keeps its number. It ends with srun's exit code. When one task
    ends, the others have 30 s to do so too (--wait): with --kill-on-bad-exit=1 the first 75 would
    kill them.

    Args:
        command: what comes after srun: the program that every task runs, and its arguments, as the
            shell is to read
            them: "python train.py --epochs 20".
        nodes: how many.
        gpus_per_node: 0 for none.
        tasks_per_node: as many as GPUs unless told otherwise, and one where there are none.
        cores_per_task: for each task; also given to srun, which does not inherit it from sbatch.
            (Nor does it pass the variables on where a site sets SBATCH_EXPORT=NONE; --export=ALL
            does.)
        memory: of each node, as Slurm reads it: "64G"; the site's default without. Slurm ends a job
            that takes more.
        minutes: after which Slurm ends the job.
        warn_seconds: for the checkpoint. Slurm may send the signal up to a minute earlier.
        partition: the site's default without.
        name: of the job.

    Raises:
        CourseError: a number or a name cannot be meant, or the time is up before the warning is due
            (`check_job`).

    Source: Slurm's sbatch(1), --signal, --requeue, --open-mode; srun(1), --wait and
    --kill-on-bad-exit.
    """
    tasks_per_node = (gpus_per_node or 1) if tasks_per_node is None else tasks_per_node
    check_job([nodes, tasks_per_node, cores_per_task, minutes], gpus_per_node, warn_seconds, [name, partition, memory])
    options = {
        "job-name": name,
        "partition": partition,
        "nodes": nodes,
        "ntasks-per-node": tasks_per_node,
        "gpus-per-node": gpus_per_node or None,
        "cpus-per-task": cores_per_task,
        "mem": memory,
        "time": minutes,
        "signal": f"TERM@{warn_seconds}",
        "requeue": "",
        "open-mode": "append",
        "output": "%x-%j.out",
    }
    asked = [f"#SBATCH --{key}={value}".rstrip("=") for key, value in options.items() if value is not None]
    body = f"""
export MASTER_ADDR=${{MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}}
export MASTER_PORT=${{MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}}
export OMP_NUM_THREADS={cores_per_task}

srun --export=ALL --kill-on-bad-exit=0 --wait=30 --cpus-per-task={cores_per_task} \\
    {command}
status=$?
if [ "$status" -eq {TRY_AGAIN} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
    return "\n".join(["#!/bin/bash", *asked, body])


def check_job(numbers: Sequence[int], gpus_per_node: int, warn_seconds: int, names: Sequence[str | None]) -> None:
    """Reject a job that cannot be meant.

    Args:
        numbers: nodes, tasks on each, cores of each task, minutes.
        gpus_per_node: may be 0.
        warn_seconds: before the end of the last of the numbers.
        names: that stand in the script as they are; None where there is none.

    Raises:
        CourseError: a number is too small, the warning leaves no time, or a name has forbidden characters.
    """
    if gpus_per_node < 0:
        raise CourseError(f"slurm_script: gpus_per_node is at least 0, not {gpus_per_node}.")
    for what, value in zip(("nodes", "tasks_per_node", "cores_per_task", "minutes"), numbers, strict=True):
        if value < 1:
            raise CourseError(f"slurm_script: {what} is at least 1, not {value}.")
    if not 0 < warn_seconds < 60 * numbers[-1]:
        raise CourseError(f"slurm_script: {warn_seconds} s before the end of {numbers[-1]} min leave no time.")
    for name in names:
        if name is not None and not re.fullmatch(r"[\w.,+-]+", name):
            raise CourseError(f"slurm_script: {name!r} has characters that a name cannot have.")

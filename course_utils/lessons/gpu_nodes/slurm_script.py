"""The batch script that starts one program on several nodes, with a task for each GPU."""

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
    """Return a script for sbatch that starts one task for each GPU with srun, lets Slurm warn the
    tasks before the time is up, and queues the job again if they ask for it.

    The first line is `#!/bin/bash`. Below it are the lines `#SBATCH --option=value`. The output
    goes to the file `NAME-NUMBER.out` (%x-%j), and a job that is queued again adds to the same
    file (--open-mode=append).

    The script exports three variables for the tasks. MASTER_ADDR is the name of the first node, and
    MASTER_PORT a port from 20000 on that follows from the job's number. Each of these two is kept
    if the environment has it already. OMP_NUM_THREADS is always the number of cores of a task.

    Slurm sends SIGTERM to the tasks (--signal) `warn_seconds` before the time is up. If srun ends
    with the exit code 75, TRY_AGAIN, the script asks for a requeue with `scontrol requeue`, which
    --requeue allows. The script itself ends with the exit code of srun. When one task ends, the
    others have 30 s to end, too (--wait=30). They must not be killed by the first 75, which
    --kill-on-bad-exit=0 prevents.

    Args:
        command: what comes after srun, which is the program that each task runs, with its
            arguments, as you would type it: "python train.py --epochs 20".
        nodes: the number of nodes.
        gpus_per_node: 0 for none.
        tasks_per_node: by default one for each GPU, or one if there are no GPUs.
        cores_per_task: for each task. srun needs the option as well, because it does not inherit it
            from sbatch. It also needs --export=ALL, since some sites pass no variables on.
        memory: of each node, in Slurm's notation, such as "64G"; the site's default if None. Slurm
            ends a job that takes more.
        minutes: after which Slurm ends the job.
        warn_seconds: the time to write a checkpoint. Slurm may send the signal up to a minute
            earlier.
        partition: the site's default if None.
        name: of the job.

    Raises:
        CourseError: a number or a name is impossible, or the time is up before the warning is due
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


def check_job(
    numbers: Sequence[int | None], gpus_per_node: int, warn_seconds: int, names: Sequence[str | None]
) -> None:
    """Reject impossible arguments of a job.

    Args:
        numbers: nodes, tasks on each, cores of each task, minutes; None for those that are not given.
        gpus_per_node: may be 0.
        warn_seconds: before the end of the last of the numbers.
        names: that are written into the script as they are; None for those that are not given.

    Raises:
        CourseError: a number is too small, the warning leaves no time, or a name has forbidden characters.
    """
    if gpus_per_node < 0:
        raise CourseError(f"slurm_script: gpus_per_node is at least 0, not {gpus_per_node}.")
    for what, value in zip(("nodes", "tasks_per_node", "cores_per_task", "minutes"), numbers, strict=True):
        if value is not None and value < 1:
            raise CourseError(f"slurm_script: {what} is at least 1, not {value}.")
    minutes = numbers[-1] or 0
    if not 0 < warn_seconds < 60 * minutes:
        raise CourseError(f"slurm_script: {warn_seconds} s before the end of {minutes} min leaves no time to train.")
    for name in names:
        if name is not None and not re.fullmatch(r"[\w.,+-]+", name):
            raise CourseError(f"slurm_script: {name!r} has characters that a name cannot have.")

"""All tasks and GPUs together, days in the time, an if around srun."""

from course_utils.errors import CourseError


def slurm_script(
    command,
    *,
    nodes=1,
    gpus_per_node=0,
    tasks_per_node=None,
    cores_per_task=1,
    minutes=60,
    warn_seconds=60,
    partition=None,
    name="train",
):
    if tasks_per_node is None:
        tasks_per_node = gpus_per_node or 1
    if min(nodes, tasks_per_node, cores_per_task, minutes) < 1 or gpus_per_node < 0:
        raise CourseError("Such a job cannot be.")
    if warn_seconds <= 0 or warn_seconds >= minutes * 60:
        raise CourseError("The warning would be no warning.")
    if any(set(word or "") & set(" \n\t#") for word in (name, partition)):
        raise CourseError("A name is one word.")
    days, rest = divmod(minutes, 24 * 60)
    options = dict(nodes=nodes, ntasks=nodes * tasks_per_node, time=f"{days}-{rest // 60}:{rest % 60}")
    options["cpus-per-task"] = cores_per_task
    options["signal"] = f"15@{warn_seconds}"
    options["open-mode"], options["output"], options["job-name"] = "append", "%x-%j.out", name
    if gpus_per_node:
        options["gpus"] = nodes * gpus_per_node
    if partition:
        options["partition"] = partition
    asked = "".join(f"#SBATCH --{key}={value}\n" for key, value in options.items())
    return f"""#!/usr/bin/env bash
{asked}#SBATCH --requeue
if [ -z "$MASTER_ADDR" ]; then
    read -r MASTER_ADDR <<< "$(scontrol show hostnames "$SLURM_JOB_NODELIST")"
fi
MASTER_PORT="${{MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}}"
export MASTER_ADDR MASTER_PORT
OMP_NUM_THREADS={cores_per_task} srun --kill-on-bad-exit=0 --wait=30 -c {cores_per_task} {command} || code=$?
if (( ${{code:-0}} == 75 )); then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit ${{code:-0}}
"""

"""Slurm's short options, several in a line; `$(hostname)`, since the script runs on the first node."""

from course_utils.lessons.gpu_nodes.slurm_script import check_job

TEXT = """#!/bin/sh
#SBATCH -J {name} -N {nodes} --ntasks-per-node {tasks}   # who and where
#SBATCH -c {cores} -t {hours}:{rest:02}:00
#SBATCH --signal=SIGTERM@{warn} --requeue --open-mode append -o {name}-%j.out
{more}
: "${{MASTER_ADDR:=$(hostname)}}" "${{MASTER_PORT:=$((30000 + SLURM_JOB_ID % 20000))}}"
export MASTER_ADDR MASTER_PORT OMP_NUM_THREADS={cores} SRUN_CPUS_PER_TASK={cores}
srun -K0 -W 30 {command}
code=$?
[ $code -ne 75 ] || scontrol requeue $SLURM_JOB_ID
exit $code
"""


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
    tasks = (gpus_per_node or 1) if tasks_per_node is None else tasks_per_node
    check_job([nodes, tasks, cores_per_task, minutes], gpus_per_node, warn_seconds, [name, partition])
    more = []
    if gpus_per_node:
        more.append(f"#SBATCH --gres=gpu:{gpus_per_node}")
    if partition:
        more.append(f"#SBATCH -p{partition}")
    return TEXT.format(
        name=name,
        nodes=nodes,
        tasks=tasks,
        cores=cores_per_task,
        hours=minutes // 60,
        rest=minutes % 60,
        warn=warn_seconds,
        more="\n".join(more),
        command=command,
    )

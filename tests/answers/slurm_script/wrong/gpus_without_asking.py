"""Refused with: How many GPUs does a node of the job have, if nobody asks for any?"""

from course_utils.lessons.gpu_nodes.slurm_script import check_job


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
        tasks_per_node = max(1, gpus_per_node)
    check_job([nodes, tasks_per_node, cores_per_task, minutes], gpus_per_node, warn_seconds, [name, partition])
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --ntasks-per-node={tasks_per_node}",
        f"#SBATCH --cpus-per-task={cores_per_task}",
        f"#SBATCH --time={minutes}",
        f"#SBATCH --signal=TERM@{warn_seconds}",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "#SBATCH --output=%x-%j.out",
    ]
    if partition is not None:
        lines.append(f"#SBATCH --partition={partition}")
    lines += [
        "",
        "first=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)",
        "export MASTER_ADDR=${MASTER_ADDR:-$first}",
        "export MASTER_PORT=${MASTER_PORT:-$((20000 + $SLURM_JOB_ID % 10000))}",
        f"export OMP_NUM_THREADS={cores_per_task}",
        f"srun --wait=30 --cpus-per-task={cores_per_task} {command}",
        "code=$?",
        "if [ $code = 75 ]; then scontrol requeue $SLURM_JOB_ID; fi",
        "exit $code",
    ]
    return "\n".join(lines) + "\n"

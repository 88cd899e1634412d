"""string.Template, and a function for the lines."""

from string import Template

from course_utils.lessons.gpu_nodes.slurm_script import check_job

SCRIPT = Template(
    """#!/bin/bash
$asked

nodes=($$(scontrol show hostnames "$$SLURM_JOB_NODELIST"))
export MASTER_ADDR="$${MASTER_ADDR:-$${nodes[0]}}"
export MASTER_PORT="$${MASTER_PORT:-$$((20000 + SLURM_JOB_ID % 10000))}"
export OMP_NUM_THREADS=$cores
srun --cpus-per-task=$cores $command
case $$? in
    0) exit 0 ;;
    75) scontrol requeue $$SLURM_JOB_ID; exit 75 ;;
    *) exit $$? ;;
esac
""".replace("*) exit $$?", "*) exit $$status").replace("case $$? in", "status=$$?\ncase $$status in")
)


def lines(**options):
    return "\n".join(f"#SBATCH --{key.replace('_', '-')}={value}" for key, value in options.items() if value)


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
    tasks = tasks_per_node if tasks_per_node is not None else gpus_per_node or 1
    check_job([nodes, tasks, cores_per_task, minutes], gpus_per_node, warn_seconds, [name, partition])
    asked = lines(
        nodes=nodes,
        ntasks_per_node=tasks,
        gpus_per_task=gpus_per_node // tasks if gpus_per_node % tasks == 0 else 0,
        gpus_per_node=gpus_per_node,
        cpus_per_task=cores_per_task,
        time=f"{minutes}:00",
        partition=partition,
        job_name=name,
        signal=f"TERM@{warn_seconds}",
        open_mode="append",
        output="%x-%j.out",
    )
    return SCRIPT.substitute(asked=asked + "\n#SBATCH --requeue", cores=cores_per_task, command=command)

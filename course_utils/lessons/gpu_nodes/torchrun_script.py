"""The batch script that starts a torchrun on every node, which then starts the processes there."""

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.slurm_script import slurm_script


def torchrun_script(
    command: str, *, nodes: int = 1, gpus_per_node: int = 0, workers: int | None = None, restarts: int = 3, **job
) -> str:
    """A script for sbatch: one torchrun for each node, and torchrun starts one process for each GPU.

    The torchruns meet at MASTER_ADDR:MASTER_PORT and divide the ranks among themselves. When a process fails, all
    start again, up to `restarts` times, without Slurm. Every try gets a store of its own: in a shared one the second
    would find the addresses of the dead. torchrun passes exit code 75 on as 1, so Slurm does not queue the job again:
    hand the script in again, and the training goes on.

    The job's first task is told that it keeps the torchruns' store (is_host). By itself torchrun resolves MASTER_ADDR
    and its machine's own name, and compares the addresses. It does not recognise an address to which the machine's name
    does not resolve (that of a second network card, or any if the name is 127.0.1.1): nobody would keep the store, and
    all would wait.

    Args:
        command: what every process runs, without "python": "train.py --epochs 20".
        workers: processes on each node; as many as GPUs unless told otherwise, and one where there are none.
        restarts: how often all processes may be started again.
        job: as in `slurm_script`: minutes, cores_per_task (of a whole node now, divided among its processes), …

    Raises:
        CourseError: a number cannot be meant.

    Source: docs.pytorch.org, "torchrun", multi-node and elastic, and "Rendezvous", is_host; Slurm's srun(1).
    """
    workers = (gpus_per_node or 1) if workers is None else workers
    for what, value, least in (("workers", workers, 1), ("restarts", restarts, 0)):
        if value < least:
            raise CourseError(f"torchrun_script: {what} is at least {least}, not {value}.")
    options = {
        "nnodes": nodes,
        "nproc-per-node": workers,
        "max-restarts": restarts,
        "rdzv-backend": "c10d",
        "rdzv-id": "$SLURM_JOB_ID",
        "rdzv-endpoint": "$MASTER_ADDR:$MASTER_PORT",
    }
    torchrun = " ".join(["torchrun", *(f"--{name}={value}" for name, value in options.items())])
    threads = max(1, job.get("cores_per_task", 1) // workers)
    variables = f"env OMP_NUM_THREADS={threads} TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
    rendezvous = """sh -c 'PET_RDZV_CONF=is_host=$((SLURM_PROCID == 0)) exec "$@"' sh"""
    return slurm_script(
        f"{rendezvous} \\\n    {variables} {torchrun} {command}",
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        tasks_per_node=1,
        **job,
    )

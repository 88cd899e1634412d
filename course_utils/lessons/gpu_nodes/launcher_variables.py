"""Which environment variable tells a process what: an example of each launcher, and what `find_launch` reads of it."""

from collections.abc import Mapping
from dataclasses import asdict

from course_utils.lessons.gpu_nodes.launch import find_launch

JOB = 4107
"""The number of the job in the examples."""


def example_environment(launcher: str, node: int, local_rank: int, nodes: int, gpus: int) -> dict[str, str]:
    """What "torchrun" or "srun" puts into the environment of one process on `nodes` × `gpus`, a process for each GPU.

    This is the first start of the job, so Slurm's SLURM_RESTART_COUNT is missing: it exists after a requeue only.

    Args:
        node, local_rank: which process, both counted from 0.

    Source: docs.pytorch.org, "torchrun", environment variables; Slurm's srun(1), output environment variables, and
    sbatch(1), SLURM_RESTART_COUNT.
    """
    rank, world_size = node * gpus + local_rank, nodes * gpus
    if launcher == "torchrun":
        found = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": local_rank}
        found |= {"MASTER_ADDR": "gpu01", "MASTER_PORT": 29400, "TORCHELASTIC_RESTART_COUNT": 0}
    else:
        found = {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": world_size, "SLURM_LOCALID": local_rank}
        found |= {"SLURM_STEP_NODELIST": f"gpu[01-{nodes:02}]", "SLURM_JOB_ID": JOB}
    return {name: str(value) for name, value in found.items()}


def variables_read(environment: Mapping[str, str]) -> dict[str, list[str]]:
    """For each attribute of `Launch` the variables that it comes from: each is changed, to see what changes with it."""
    before = asdict(find_launch(environment))
    read: dict[str, list[str]] = {attribute: [] for attribute in before if attribute != "by"}
    for name, value in environment.items():
        changed = str(int(value) + 1) if value.isdigit() else f"other-{value}"
        after = asdict(find_launch({**environment, name: changed}))
        for attribute, names in read.items():
            if after[attribute] != before[attribute]:
                names.append(name)
    return read

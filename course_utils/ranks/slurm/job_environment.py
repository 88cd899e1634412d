"""The environment in which a job is handed in, by a process that may itself run in a job."""

import re
from collections.abc import Mapping


def environment_for_new_job(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what Slurm told the job that this process may itself run in, and without its folders.

    srun reads such variables as orders: the memory or the cores of this job would contradict those of the new one.
    Folders for scratch files and sockets, such as $TMPDIR, may be this node's alone. What a learner or a site says to
    sbatch (SBATCH_ACCOUNT, SBATCH_PARTITION, …) stays.

    Source: Slurm's sbatch(1) and srun(1), input environment variables.
    """
    inherited = re.compile(r"(SLURM|SRUN|JUPYTER)_|SBATCH_(CPU|MEM)_BIND|(TMPDIR|COURSE_RUNTIME)$")
    return {name: value for name, value in environment.items() if name == "SLURM_CONF" or not inherited.match(name)}

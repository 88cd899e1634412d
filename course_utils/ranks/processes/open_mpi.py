"""What makes Open MPI start ranks on one machine as MPICH does. Other launchers do not know these variables.

By itself Open MPI starts no more ranks than there are cores, binds each of a few to a core of its own, and starts none
for root. A rank that waits does not let the others have its core.

The variables are for the mpiexec that the course calls, and for nothing else. A rank removes them once it has joined
MPI, so an mpiexec that a learner calls there does not see them.

Source: Open MPI 4.1, mpirun(1) and `ompi_info --all`; Open MPI 5.0, "Launching MPI applications"; PRRTE, prterun(1).
"""

from collections.abc import MutableMapping
from pathlib import Path

OWN_LAUNCH = {
    **{"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"},
    **{"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"},
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Behind links the ranks of every user are started by a root, the one of their own namespace.
    **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
    **dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_btl": "self,vader",  # no sockets either
}


def session_folder(folder: Path) -> dict[str, str]:
    """Where Open MPI keeps its own files: by itself among all temporary files, where they stay if it is killed."""
    return dict.fromkeys(("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"), str(folder))


def remove_own_launch(environment: MutableMapping[str, str]) -> None:
    """Remove what `OWN_LAUNCH` has put into an environment; what a site or a learner has set differently stays."""
    for name, value in OWN_LAUNCH.items():
        if environment.get(name) == value:
            del environment[name]

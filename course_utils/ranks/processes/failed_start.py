"""Why ranks of this machine did not start, from what their launcher and they have written, and what to do about it."""

import re
import subprocess
from dataclasses import dataclass
from enum import Enum, auto

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import ranks_python
from course_utils.ranks.processes.launch_ranks import (
    find_mpiexec,
    launchers_mpi,
    log_of,
    mpi_library,
    ranks_log,
    wait_for_launcher,
)
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.words import count

_SECONDS_FOR_ITS_WORDS = 3.0


class Obstacle(Enum):
    """What keeps ranks from starting."""

    NO_MPI4PY = auto()
    """The Python of the ranks has no mpi4py."""
    NO_LIBRARY = auto()
    """mpi4py does not find the MPI library that it was built with."""
    DIFFERENT_MPI = auto()
    """The launcher belongs to a different MPI than mpi4py, so the processes that it starts do not find each other."""
    BEHIND_LINKS = auto()
    """Open MPI's ranks do not reach their launcher from behind emulated links."""
    LAUNCHER_ENDED = auto()
    """The launcher ended before the ranks were there, for reasons that its own words must explain."""
    UNKNOWN = auto()
    """A rank ended, or the time was up, and what was written must explain it."""


_WORDS = {
    Obstacle.NO_MPI4PY: "No module named 'mpi4py'",
    Obstacle.NO_LIBRARY: r"lib\w*mpi\S*: cannot open shared object file|cannot load MPI library",
}
"""Python's words, the dynamic linker's, and mpi4py's."""
_UNREACHABLE = r"OPAL ERROR: Unreachable in file \w*pmix|OPAL ERROR: Unreachable in file ext3x"
"""Open MPI's words."""
_LIBRARIES = {"Open MPI": "Open MPI", "MPICH": r"MPICH|Intel\(R\) MPI"}


@dataclass(frozen=True)
class FailedStart:
    """Why ranks did not start.

    Attributes:
        obstacle: the decision.
        mpiexec: the launcher.
        launcher, library: the MPIs of the launcher and of mpi4py, where they are known: "Open MPI", "MPICH 5.0.2".
        wrote: the lines that controller, launcher and ranks have written.
    """

    obstacle: Obstacle
    mpiexec: str
    launcher: str = ""
    library: str = ""
    wrote: str = ""


def failed_start(folder: RanksFolder, behind_links: bool = False) -> FailedStart:
    """Find out why the ranks of a folder did not start.

    Args:
        behind_links: they were to be nodes of their own.
    """
    ended = wait_for_launcher(folder, _SECONDS_FOR_ITS_WORDS)
    log, mpiexec = ranks_log(folder), find_mpiexec()
    known = {"mpiexec": mpiexec, "wrote": log_of(folder)}
    for obstacle, words in _WORDS.items():
        if re.search(words, log):
            return FailedStart(obstacle, **known)
    if behind_links and re.search(_UNREACHABLE, log):
        return FailedStart(Obstacle.BEHIND_LINKS, **known)
    launcher, library = mpis(mpiexec)
    if are_different(launcher, library):
        return FailedStart(Obstacle.DIFFERENT_MPI, launcher=launcher, library=library, **known)
    return FailedStart(Obstacle.LAUNCHER_ENDED if ended else Obstacle.UNKNOWN, **known)


def mpis(mpiexec: str) -> tuple[str, str]:
    """The MPIs of a launcher and of the ranks' mpi4py; "" where that cannot be found out."""
    try:
        library = mpi_library()
    except (CourseError, OSError, subprocess.TimeoutExpired):
        library = ""
    return launchers_mpi(mpiexec), library


def are_different(launcher: str, library: str) -> bool:
    """Whether a launcher's MPI and mpi4py's are known, and not the same."""
    family = next((mpi for mpi, words in _LIBRARIES.items() if re.match(words, library)), "")
    return bool(launcher and family) and launcher != family


def failed_start_text(failed: FailedStart, who: str = "The ranks") -> str:
    """Why the ranks did not start, and what to do, in words.

    Args:
        who: they are.
    """
    what = f"{who} did not start"
    wrote = f"What they wrote:\n{failed.wrote}" if failed.wrote else "They wrote nothing."
    match failed.obstacle:
        case Obstacle.NO_MPI4PY:
            return f"{what}: {ranks_python()} has no mpi4py. `make setup` installs it."
        case Obstacle.NO_LIBRARY:
            return (
                f"{what}: mpi4py does not find the MPI library that it was built with. Load the module of your site's "
                f"MPI before you start JupyterLab, the same one as for `make setup`. {wrote}"
            )
        case Obstacle.DIFFERENT_MPI:
            return f"{what}. {different_mpis_text(failed.mpiexec, failed.launcher, failed.library)}"
        case Obstacle.BEHIND_LINKS:
            return (
                f"{what}: from behind emulated links they do not reach {failed.mpiexec}. This Open MPI has a PMIx of "
                "its own, and links work only with one that uses the library libpmix.so.2. Leave link, latency and "
                "slow out."
            )
        case Obstacle.LAUNCHER_ENDED:
            wrote = f"What it wrote:\n{failed.wrote}" if failed.wrote else "It wrote nothing."
            return f"{what}: {failed.mpiexec}, which starts them, has ended. {wrote}"
    return f"{what}. {wrote}"


def different_mpis_text(mpiexec: str, launcher: str, library: str) -> str:
    """What to do about a launcher and an mpi4py that do not belong together."""
    return (
        f"{mpiexec} belongs to {launcher}, and mpi4py was built with {library}, so the processes that it starts do not "
        "find each other. Load the module of mpi4py's MPI before you start JupyterLab, or name its mpiexec in "
        f"{settings.MPIEXEC.name}."
    )


def unrelated_processes_text(number: int) -> str:
    """What to do where as many processes have started, and each takes itself for the only rank."""
    mpiexec = find_mpiexec()
    launcher, library = mpis(mpiexec)
    started = f"{count(number, 'process')} started, but they do not know of each other"
    if are_different(launcher, library):
        return f"{started}. {different_mpis_text(mpiexec, launcher, library)}"
    return (
        f"{started}, because {mpiexec}, which started them, does not belong to mpi4py's MPI. Load the module of that "
        f"MPI before you start JupyterLab, or name its mpiexec in {settings.MPIEXEC.name}."
    )

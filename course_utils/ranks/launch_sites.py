"""Where ranks live: on this machine, or in a batch job on a cluster's nodes. Each knows how its ranks are started."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from course_utils.errors import CourseError
from course_utils.machine import allowed_cores
from course_utils.ranks.links.network import EmulatedNetwork, possible_network
from course_utils.ranks.processes import launch_ranks
from course_utils.ranks.processes.failed_start import failed_start, failed_start_text, unrelated_processes_text
from course_utils.ranks.processes.process_control import LocalRanks, ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder, shared_root
from course_utils.ranks.slurm import batch_job, job_startup
from course_utils.ranks.slurm.remote_ranks import RemoteRanks
from course_utils.words import count

if TYPE_CHECKING:
    from course_utils.progress_bar import ProgressBar

START_SECONDS = 90.0


class LaunchSite(Protocol):
    """A place for ranks."""

    @property
    def facts(self) -> dict[str, Any]:
        """What tells two places apart, and what the ranks' folder keeps of it."""

    def folder(self) -> RanksFolder:
        """A fresh folder that all ranks reach."""

    def launch(self, folder: RanksFolder) -> None:
        """Begin to start ranks, and return at once."""

    def startup_check(self, folder: RanksFolder, bar: "ProgressBar") -> Callable[[], None]:
        """To be called while the ranks come up; raises `CourseError` when they take too long."""

    def control(self, folder: RanksFolder, introduced: list[dict]) -> ProcessControl:
        """Sees and ends the ranks, once they have introduced themselves."""

    def unrelated_processes_text(self) -> str:
        """What to do where processes came up that do not know of each other."""

    def description(self, introduced: list[dict]) -> str:
        """What there is, in a line."""


@dataclass(frozen=True)
class ThisMachine:
    """This machine; with a network, each rank is a node of its own on it."""

    ranks: int
    network: EmulatedNetwork | None = None

    @property
    def facts(self) -> dict[str, Any]:
        return {"network": self.network.facts if self.network else None}

    def folder(self) -> RanksFolder:
        return RanksFolder.new()

    def launch(self, folder: RanksFolder) -> None:
        launch_ranks.launch(folder, self.ranks, self.network)

    def startup_check(self, folder: RanksFolder, bar: "ProgressBar") -> Callable[[], None]:
        deadline = time.monotonic() + START_SECONDS

        def check() -> None:
            bar.refresh()
            over = launch_ranks.launcher_has_ended(folder) or folder.a_rank_has_ended()
            if over or time.monotonic() > deadline:
                raise CourseError(failed_start_text(failed_start(folder, behind_links=bool(self.network))))

        return check

    def control(self, folder: RanksFolder, introduced: list[dict]) -> ProcessControl:
        return LocalRanks(
            folder,
            [introduction["pid"] for introduction in introduced],
            [introduction["shell"] for introduction in introduced],
        )

    def unrelated_processes_text(self) -> str:
        return unrelated_processes_text(self.ranks)

    def description(self, introduced: list[dict]) -> str:
        links = f", {self.network}" if self.network else ""
        return f"on this machine{links}: {introduced[0]['mpi']}, {count(allowed_cores(), 'core')}"


@dataclass(frozen=True)
class SlurmNodes:
    """Nodes of a cluster, in a job of Slurm."""

    job: batch_job.Job

    @property
    def facts(self) -> dict[str, Any]:
        return {"network": None, "slurm": self.job.facts}

    def folder(self) -> RanksFolder:
        return RanksFolder.new(shared_root(made=True))

    def launch(self, folder: RanksFolder) -> None:
        batch_job.launch(folder, self.job)

    def startup_check(self, folder: RanksFolder, bar: "ProgressBar") -> Callable[[], None]:
        return job_startup.startup_check(folder, bar)

    def control(self, folder: RanksFolder, introduced: list[dict]) -> ProcessControl:
        return RemoteRanks(folder, [fact["node"] for fact in introduced], folder.facts()["job"])

    def unrelated_processes_text(self) -> str:
        return batch_job.unrelated_processes_text(self.job.ranks)

    def description(self, introduced: list[dict]) -> str:
        names = list(dict.fromkeys(introduction["node"] for introduction in introduced))
        where = f"on {count(len(names), 'node')} ({', '.join(names)}) of Slurm's job"
        return f"{where}: {introduced[0]['mpi']}, {count(len(introduced[0]['cores']), 'core')} on a node"


def site_of(ranks: int, network: EmulatedNetwork | None, where: str | None, job: dict[str, Any]) -> LaunchSite:
    """What `start` was asked for.

    Raises:
        CourseError: it cannot be meant.
    """
    if where is None:
        if job:
            raise CourseError(f'start({next(iter(job))}=…) is for where="slurm": this machine has no such choice.')
        launch_ranks.check_number(ranks, allowed_cores())
        return ThisMachine(ranks, possible_network(network, launch_ranks.links_obstacle))
    if where != "slurm":
        raise CourseError(f'start(where={where!r}): "slurm" and "nowhere" are known, or nothing for this machine.')
    if network:
        raise CourseError("The nodes of a cluster have links of their own: leave link, latency and slow out.")
    known = set(batch_job.Job.__dataclass_fields__) - {"ranks"}
    if unknown := sorted(set(job) - known):
        raise CourseError(f"start({unknown[0]}=…) is unknown. With Slurm you can set {', '.join(sorted(known))}.")
    return SlurmNodes(batch_job.Job(ranks, **job))

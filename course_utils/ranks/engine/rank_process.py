"""What a process is once it has joined its ranks: traced communicators, and interrupts that do no harm."""

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpi4py import MPI

from course_utils import settings
from course_utils.ranks.engine.interrupts import on_interrupt, print_threads_error
from course_utils.ranks.processes.open_mpi import remove_own_launch
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.processes.standing_questions import answer_questions
from course_utils.trace.activity import ActivityFile
from course_utils.trace.ledger import WORLD
from course_utils.trace.mpi.files import TracedFile
from course_utils.trace.mpi.meetings import meetings
from course_utils.trace.mpi.requests import PersistentRequest, TracedRequest
from course_utils.trace.mpi.traced_communicators import TracedComm, attach_buffer, detach_buffer
from course_utils.trace.mpi.windows import TracedWin
from course_utils.trace.recorder import recorder
from course_utils.trace.torch.torch_import import trace_torch


class Communicators:
    """Communicators of the first n ranks, numbered: every run gets one on which no old message can be waiting."""

    def __init__(self, world: MPI.Intracomm) -> None:
        sizes = range(1, world.size + 1)
        # Intracomms, though mpi4py's stubs say Comm.
        self._begun: dict[int, tuple[Any, MPI.Request]] = {}
        self._of_size: dict[int, list[Any]] = {
            size: [world.Split(0 if world.rank < size else MPI.UNDEFINED)] for size in sizes
        }

    def get(self, size: int, number: int) -> MPI.Intracomm:
        """The communicator of that number, made now where it is new; all of its ranks must ask for it."""
        made = self._of_size[size]
        while len(made) <= number:
            fresh, request = self._begun.get(size) or made[0].Idup()
            self._begun[size] = fresh, request  # MPI takes no second one while this is under way
            recorder.wait(request.Test, "the beginning of the run")
            del self._begun[size]
            fresh.Set_name(f"{size} ranks, number {len(made)}")
            made.append(fresh)
        return made[number]


@dataclass(frozen=True)
class RankProcess:
    """This process as a rank.

    Attributes:
        world: the traced communicator of all ranks, which learners find as `MPI.COMM_WORLD`.
        communicators: those that calls get.
        folder: of the ranks; what a rank prints beyond measure goes there.
    """

    world: TracedComm
    communicators: Communicators
    folder: RanksFolder
    direct: "DirectWorld"

    def use_world(self, inner: MPI.Intracomm) -> None:
        """Let `MPI.COMM_WORLD` carry its messages over the communicator of a call."""
        self.world.label = WORLD
        self.world.renew(inner)

    def use_direct_world(self) -> None:
        """Let `MPI.COMM_WORLD` be that of requests which do not come from the course.

        They come without a number of a communicator, so all of them share one: what they leave on it meets no call.
        """
        if self.world.label != self.direct.label:
            self.world.label = self.direct.label
            self.world.renew(self.direct.inner)


@dataclass
class DirectWorld:
    """The communicator of all requests that do not come from the course, and its name in the ledger."""

    inner: Any
    label: str = f"{WORLD}/direct"

    def replace(self, inner: MPI.Intracomm, number: int) -> None:
        """Use a fresh one: something was broken off on the old one."""
        self.inner, self.label = inner, f"{WORLD}/direct {number}"


_joined: RankProcess | None = None


def join(folder: RanksFolder, activity: Path | int) -> RankProcess:
    """Make this process a rank of its world, once: trace MPI, tell what it does, and heed interrupts.

    Args:
        activity: the file, or the memory by its descriptor, in which others read what this rank does.
    """
    global _joined
    plain = MPI.COMM_WORLD
    recorder.rank, recorder.activity = plain.rank, ActivityFile(activity)
    os.environ[settings.RANK.name] = str(plain.rank)
    remove_own_launch(os.environ)
    communicators = Communicators(plain)
    world, direct = TracedComm(communicators.get(plain.size, 0)), DirectWorld(plain.Dup())
    _joined = RankProcess(world, communicators, folder, direct)
    meetings.begin(plain.Dup())
    _trace_mpi(_joined.world)
    trace_torch()
    signal.signal(signal.SIGINT, on_interrupt)
    threading.excepthook = print_threads_error
    if isinstance(activity, Path):
        answer_questions(folder.question_file(plain.rank), recorder.activity)
    return _joined


def this_rank() -> RankProcess:
    """What `join` has made of this process."""
    assert _joined, "this process has joined no ranks"
    return _joined


def _trace_mpi(traced_world: TracedComm) -> None:
    """Put what is traced in the place of mpi4py's own."""
    ours = {
        "COMM_WORLD": traced_world,
        "COMM_SELF": TracedComm(MPI.COMM_SELF, [traced_world.rank], f"self {traced_world.rank}"),
        "Request": TracedRequest,
        "Prequest": PersistentRequest,
        "Win": TracedWin,
        "File": TracedFile,
        "Finalize": _refuse_to_finalize,
        "Attach_buffer": attach_buffer,
        "Detach_buffer": detach_buffer,
    }
    for name, thing in ours.items():
        setattr(MPI, name, thing)


def _refuse_to_finalize() -> None:
    """In the place of `MPI.Finalize`."""
    raise RuntimeError("MPI.Finalize: these ranks live on for your next cell, and end MPI when they end; leave it out")

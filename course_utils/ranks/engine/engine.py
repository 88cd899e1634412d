"""A rank: an ipyparallel engine that has joined MPI, with traced communicators and interrupts that do no harm.

Started under mpiexec as `python -m course_utils.ranks.engine.engine FOLDER`.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import time
import warnings
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import FrameType

from mpi4py import MPI

from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.trace.activity import ACTIVITY, IMPORTS, RUNNING, ActivityFile
from course_utils.trace.mpi import TracedComm, attach_buffer, detach_buffer
from course_utils.trace.recorder import recorder, warning_text
from course_utils.trace.requests import PersistentRequest, TracedRequest
from course_utils.trace.windows import TracedWin

_WORLD = MPI.COMM_WORLD  # the plain one; `MPI.COMM_WORLD` becomes a traced one in `main`


class Communicators:
    """Communicators of the first n ranks, numbered: every run gets one on which no old message can be waiting."""

    def __init__(self) -> None:
        sizes = range(1, _WORLD.size + 1)
        self._begun: dict[int, tuple[MPI.Intracomm, MPI.Request]] = {}
        self._of_size = {size: [_WORLD.Split(0 if _WORLD.rank < size else MPI.UNDEFINED)] for size in sizes}

    def get(self, size: int, number: int) -> MPI.Intracomm:
        """The communicator of that number, made now where it is new; all of its ranks must ask for it."""
        made = self._of_size[size]
        while len(made) <= number:
            fresh, request = self._begun.get(size) or made[0].Idup()
            self._begun[size] = fresh, request  # MPI takes no second one while this is under way
            recorder.wait(request.Test, "a fresh communicator", "")
            del self._begun[size]
            made.append(fresh)
        return made[number]


communicators: Communicators
folder: RanksFolder
world: TracedComm


def trace_mpi(traced_world: TracedComm) -> None:
    """Put what is traced in the place of mpi4py's own."""
    MPI.COMM_WORLD = traced_world
    MPI.COMM_SELF = TracedComm(MPI.COMM_SELF, [traced_world.rank], f"self {traced_world.rank}")
    MPI.Request, MPI.Prequest, MPI.Win = TracedRequest, PersistentRequest, TracedWin
    MPI.Finalize = refuse_to_finalize
    MPI.Attach_buffer, MPI.Detach_buffer = attach_buffer, detach_buffer


def refuse_to_finalize() -> None:
    """In the place of `MPI.Finalize`.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("MPI.Finalize: these ranks live on for your next cell, and end MPI when they end; leave it out")


def run_learners(function, *args, **kwargs):
    """Call a learner's function. An interrupt is let through while this frame, or IPython's, is on the stack."""
    with outside_the_loop():
        return function(*args, **kwargs)


def run_coroutine(coroutine: Coroutine) -> object:
    """Run a cell that awaits something."""
    return run_learners(asyncio.run, coroutine)


@contextlib.contextmanager
def outside_the_loop() -> Iterator[None]:
    """Inside, learners may run event loops of their own, as in a script: asyncio allows none within another, ours."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio.set_event_loop(loop)
        asyncio._set_running_loop(loop)


def imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported: cut off there, half of it would be left behind."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _runs_learners_code(frame: FrameType | None) -> bool:
    while frame is not None:
        below = frame.f_back
        if frame.f_code is run_learners.__code__:
            return True
        if below is not None and below.f_code.co_name == "run_code" and frame.f_code.co_name.startswith("<"):
            return True
        frame = below
    return False


def _on_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise in the learner's code only: an interrupt in the middle of ipyparallel's own would lose a message.

    Nor in an import: one that is cut off leaves half a module behind. The notebook hears of it, and asks again.
    """
    if imports(frame):
        if recorder.activity:
            recorder.activity.write(RUNNING, IMPORTS)
    elif _runs_learners_code(frame):
        raise KeyboardInterrupt


def without_debugger() -> None:
    """Let ipykernel find no debugger: nobody debugs a rank with one, and its import takes a tenth of a second."""
    sys.modules["debugpy"] = None
    import ipykernel.debugger  # noqa: F401

    del sys.modules["debugpy"]


def _engine_class() -> type:
    without_debugger()
    from ipyparallel.engine import app
    from ipyparallel.engine.kernel import IPythonParallelKernel

    class RankKernel(IPythonParallelKernel):
        """ipykernel exchanges the interrupt handler around each message; ours stays."""

        def pre_handler_hook(self) -> None: ...

        def post_handler_hook(self) -> None: ...

    class RankEngine(app.IPEngine):
        """An engine whose end is the end of the process, whatever its threads are doing."""

        def init_signal(self) -> None:
            signal.signal(signal.SIGINT, _on_interrupt)
            signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))

    app.Kernel = RankKernel
    return RankEngine


def _wait_for(file: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() > deadline or not folder.path.exists():
            sys.exit(f"{file} did not appear")
        time.sleep(0.01)


def _activity_place() -> Path | int:
    """A file of the folder, which the notebook maps too; or the memory that a minder has made and looks at."""
    descriptor = os.environ.pop(ACTIVITY, "")
    return int(descriptor) if descriptor else folder.activity_file(_WORLD.rank)


def main(path: str) -> None:
    """Join MPI, put the traced communicator in the place of `MPI.COMM_WORLD`, and serve the notebook."""
    global communicators, folder, world
    if not MPI.Is_initialized():  # a forked rank, whose server has imported MPI and must not begin it
        MPI.Init_thread()
    folder = RanksFolder(Path(path))
    os.umask(0o077)
    faults = open(folder.fault_file(_WORLD.rank), "w")  # noqa: SIM115 - stays open for good
    faulthandler.enable(faults)
    faulthandler.register(signal.SIGUSR1, faults)  # `kill -USR1` writes down where a rank is, whatever it is in
    recorder.rank = _WORLD.rank
    recorder.activity = ActivityFile(_activity_place())
    os.environ["COURSE_RANK"] = str(_WORLD.rank)
    communicators = Communicators()
    world = TracedComm(communicators.get(_WORLD.size, 0))
    trace_mpi(world)
    warnings.formatwarning = warning_text
    warnings.filterwarnings("ignore", "To exit: use")  # IPython's, on `sys.exit` in a cell
    connection = folder.path / "security" / "ipcontroller-engine.json"
    rank_engine = _engine_class()  # slow to import: done while the controller comes up
    _wait_for(connection)
    rank_engine.launch_instance(
        argv=[
            f"--file={connection}",
            f"--profile-dir={folder.path}",
            f"--IPEngine.id={_WORLD.rank}",
            f"--IPEngine.work_dir={Path.cwd()}",  # by default the folder in which ipyparallel was imported
            "--IPEngine.max_heartbeat_misses=0",  # the watch and the notebook see to a lost controller
            "--IPEngine.enable_nanny=False",
            "--timeout=60",
            "--log-level=ERROR",
        ]
    )
    os._exit(0)


if __name__ == "__main__":
    # What the notebook calls imports this module by its name; both names must mean this one copy.
    sys.modules["course_utils.ranks.engine.engine"] = sys.modules["__main__"]
    main(sys.argv[1])

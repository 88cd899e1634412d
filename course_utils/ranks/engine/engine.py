"""A rank that serves a notebook: an ipyparallel engine, in a process that has joined its ranks (`rank_process`).

Started under mpiexec as `python -m course_utils.ranks.engine.engine FOLDER`.
"""

import faulthandler
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from mpi4py import MPI

from course_utils import settings
from course_utils.ranks.engine.calls import RecordedRequest
from course_utils.ranks.engine.rank_process import join
from course_utils.ranks.engine.reply import OWN_REQUEST
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.trace.activity import IDLE, RUNNING
from course_utils.trace.recorder import recorder, warning_text


def hide_debugger() -> None:
    """Let ipykernel find no debugger: nobody debugs a rank with one, and its import takes a tenth of a second."""
    sys.modules["debugpy"] = None  # type: ignore[assignment] # so that its import fails
    import ipykernel.debugger  # noqa: F401

    del sys.modules["debugpy"]


def _engine_class() -> Any:
    hide_debugger()
    from ipyparallel.engine import app
    from ipyparallel.engine.kernel import IPythonParallelKernel

    class RankKernel(IPythonParallelKernel):
        """ipykernel's kernel, but its interrupt handler stays ours, and the notebook sees when it is at work."""

        def do_apply(self, content: Any, bufs: Any, msg_id: str, reply_metadata: Any) -> Any:
            """Say that the rank is at work: a call of the notebook's that has to wait is then not taken for lost.

            What is no call of the course's is recorded here.
            """
            arguments = content, bufs, msg_id, reply_metadata
            if reply_metadata.get("label") != OWN_REQUEST:
                with RecordedRequest(self.shell) as request:
                    reply_content, result = super().do_apply(*arguments)
                    return request.tell_what_went_wrong(reply_content), result
            assert recorder.activity
            recorder.activity.write(RUNNING)
            recorder.in_call = True
            try:
                return super().do_apply(*arguments)
            finally:
                recorder.leave_call()
                if recorder.activity.read().state != IDLE:  # as a call of the notebook's leaves it, with more to read
                    recorder.activity.write(IDLE)
                    recorder.activity.ask_to_stop(False)

        async def do_execute(self, *args: Any, **kwargs: Any) -> Any:
            """Record a cell that comes from a view of ipyparallel's; those of `%%px` are calls of the course's."""
            with RecordedRequest(self.shell) as request:
                return request.tell_what_went_wrong(await super().do_execute(*args, **kwargs))

        def pre_handler_hook(self) -> None: ...

        def post_handler_hook(self) -> None: ...

    class RankEngine(app.IPEngine):
        """An engine whose end is the end of the process, whatever its threads are doing."""

        def init_signal(self) -> None:  # interrupts are `join`'s
            signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))

    app.Kernel = RankKernel
    return RankEngine


def _wait_for(file: Path, folder: RanksFolder, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() > deadline or not folder.path.exists():
            sys.exit(f"{file} did not appear")
        time.sleep(0.01)


def _activity_memory(folder: RanksFolder) -> Path | int:
    """A file of the folder, which the notebook maps too; or the memory that a node agent has made and looks at."""
    descriptor = settings.ACTIVITY.value()
    os.environ.pop(settings.ACTIVITY.name, None)
    return folder.activity_file(MPI.COMM_WORLD.rank) if descriptor is None else descriptor


def main(path: str) -> None:
    """Join MPI, put the traced communicator in the place of `MPI.COMM_WORLD`, and serve the notebook."""
    if not MPI.Is_initialized():  # a forked rank, whose server has imported MPI and must not begin it
        MPI.Init_thread()
    if sys.path[0] != os.getcwd():  # a learner's modules lie there; those of the course come from its own checkout
        sys.path.insert(0, os.getcwd())
    folder = RanksFolder(Path(path))
    os.umask(0o077)
    rank = MPI.COMM_WORLD.rank
    faults = open(folder.fault_file(rank), "w")  # noqa: SIM115 - stays open for good
    faulthandler.enable(faults)
    faulthandler.register(signal.SIGUSR1, faults)  # `kill -USR1` writes down where a rank is, whatever it is in
    join(folder, _activity_memory(folder))
    warnings.formatwarning = warning_text
    warnings.filterwarnings("ignore", "To exit: use")  # IPython's, on `sys.exit` in a cell
    connection = folder.path / "security" / "ipcontroller-engine.json"
    rank_engine = _engine_class()  # slow to import: done while the controller comes up
    _wait_for(connection, folder)
    rank_engine.launch_instance(
        argv=[
            f"--file={connection}",
            f"--profile-dir={folder.path}",
            f"--IPEngine.id={rank}",
            f"--IPEngine.work_dir={Path.cwd()}",  # by default the folder in which ipyparallel was imported
            "--IPEngine.max_heartbeat_misses=0",  # the watch and the notebook see to a lost controller
            "--IPEngine.enable_nanny=False",
            "--timeout=60",
            "--log-level=ERROR",
        ]
    )
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])

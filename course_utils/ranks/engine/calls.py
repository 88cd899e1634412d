"""What the notebook asks of a rank. Each function runs in the rank; arguments and results are plain or bytes."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpi4py import MPI

from course_utils import settings, system
from course_utils.machine import gpus
from course_utils.ranks.engine.interrupts import on_interrupt, run_coroutine, run_learner_code
from course_utils.ranks.engine.output import capture_prints
from course_utils.ranks.engine.process_settings import keep_settings
from course_utils.ranks.engine.rank_process import this_rank
from course_utils.ranks.engine.reply import (
    Raised,
    RankTask,
    Reply,
    describe_exception,
    from_bytes,
    pack_reply,
    to_bytes,
    unpacking_failure,
)
from course_utils.ranks.processes.installation import version
from course_utils.ranks.processes.launch_ranks import short_name
from course_utils.trace.activity import RUNNING
from course_utils.trace.blocking_calls import has_abandoned_calls
from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.ledger import EARLIER_RUNS, WORLD
from course_utils.trace.mpi.call_errors import error_text
from course_utils.trace.mpi.traced_communicators import TracedComm, forget_leftovers, free_leftovers
from course_utils.trace.mpi.windows import release_locks
from course_utils.trace.recorder import StopAsked, recorder

_BEGINNING = "the beginning of the run"
_OTHERS_HEAR_OF_A_STOP = 0.5
"""Seconds within which all ranks that have come know that they are to stop."""


class MPIBroken(Exception):
    """MPI fails where no learner's code runs."""


def introduce(path_of_notebook: list[str]) -> dict:
    """Who this rank is. Also makes modules beside the notebook importable here."""
    sys.path += [path for path in path_of_notebook if path not in sys.path]
    world = this_rank().world
    return {
        "rank": world.rank,
        "pid": os.getpid(),
        "shell": settings.SHELL.value() or os.getppid(),
        "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "cores": system.cores(),
        "threads": int(os.environ.get("OMP_NUM_THREADS", "1")),
        "gpus": len(gpus()),
        "mpi": short_name(MPI.Get_library_version()),
        "version": version(),
    }


@contextlib.contextmanager
def _recording(fresh: bool = True) -> Iterator[None]:
    """A call of the notebook's, with a ledger of its own where it has a fresh communicator.

    The stop button works in it, whatever the call before has done to SIGINT.
    """
    if signal.getsignal(signal.SIGINT) is not on_interrupt:
        signal.signal(signal.SIGINT, on_interrupt)
    recorder.begin(this_rank().world.rank, fresh)
    try:
        yield
    finally:
        recorder.end()


class RecordedRequest:
    """A request that a client of ipyparallel has sent, and not the course: it is recorded as a call is.

    IPython's long tracebacks take seconds where a machine is busy, in which a rank hears no interrupt.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._error: BaseException | None = None

    def __enter__(self) -> "RecordedRequest":
        own = {"showtraceback": self._keep_error, "showsyntaxerror": self._keep_error}
        vars(self._shell).update(own, _format_exception_for_storage=lambda *args, **kwargs: {})
        recorder.begin(this_rank().world.rank, fresh=False)
        this_rank().use_direct_world()
        recorder.begin_function()
        return self

    def __exit__(self, *_: object) -> None:
        recorder.end()
        for name in ("showtraceback", "showsyntaxerror", "_format_exception_for_storage"):
            vars(self._shell).pop(name, None)

    def _keep_error(self, *_: Any, **__: Any) -> None:
        self._error = sys.exc_info()[1] or self._error
        self._shell._last_traceback = []

    def tell_what_went_wrong(self, reply_content: dict) -> dict:
        """Add to an error of ipyparallel's what the rank did, and the learner's line to its text."""
        error = self._error
        if reply_content.get("status") != "error" or error is None:
            return reply_content

        def fail() -> None:
            raise error

        reply = _reply_to(fail)
        raised = reply.error or Raised("", "")
        about = {"kind": reply.kind, "waiting": reply.waiting, "type": raised.type, "message": raised.message}
        reply_content.setdefault("engine_info", {})["course"] = about | {"line": raised.line}
        if reply.waiting:
            reply_content |= {"ename": "Stopped", "evalue": f"while waiting in {reply.waiting}"}
        elif raised.line:
            reply_content["evalue"] = str(raised).partition(": ")[2] or raised.line
        reply_content["traceback"] = [f"{reply_content['ename']}: {reply_content['evalue']}"]
        return reply_content


def call(payload: bytes, pack: Callable[[Reply], Any] = pack_reply) -> Any:
    """Run a `RankTask` and give back a `Reply`; nothing that the task does raises here.

    Args:
        pack: makes of the reply what leaves this process; bytes for the notebook.
    """
    return _run_and_pack(payload, pack)[1]


def call_each(payloads: list[bytes], seconds: float) -> bytes:
    """Run tasks one after the other until the seconds are over, or a task is interrupted. None may need other ranks.

    Gives back a `Reply` whose value holds the replies of those that came to an end, as bytes.
    """
    until = time.monotonic() + seconds
    whole = Reply(this_rank().world.rank, "returned", value=[])
    for payload in payloads:
        reply, data = _run_and_pack(payload)
        whole.value.append(data)
        whole.events += reply.events
        whole.never_waited_for += reply.never_waited_for
        whole.began = whole.began or reply.began
        if reply.kind == "interrupted" or time.monotonic() > until:
            break
    return to_bytes(whole)


def meet(communicator: int) -> bytes:
    """Come together on a fresh communicator: a call that was broken off may have left MPI unable to.

    What it has filled of the memory goes back to the machine.
    """
    system.give_back_memory()
    with _recording():
        return to_bytes(_reply_to(lambda: _meet(communicator)))


def _meet(communicator: int) -> None:
    release_locks()
    if has_abandoned_calls():
        raise MPIBroken("a thread sits in a call that was broken off")
    inner, _ = _meet_on(this_rank().world.size, communicator)
    this_rank().direct.replace(inner, communicator)


def _run_and_pack(payload: bytes, pack: Callable[[Reply], Any] = pack_reply) -> tuple[Reply, Any]:
    with _recording():
        reply = _run_task(payload)
        return reply, _pack(reply, pack)


def execute(cell: str, communicator: int | None) -> bytes:
    """Run a cell of `%%px` and give back a `Reply` whose value is the list of rich outputs.

    `communicator`: None where only some ranks run the cell, which then keep the one of the cell before.
    """
    with _recording(fresh=communicator is not None):
        return _pack(_execute(cell, communicator))


_imports: list[threading.Thread] = []


def import_in_background(module: str) -> None:
    """Import something slow while the learner reads."""
    thread = threading.Thread(target=__import__, args=(module,), daemon=True, name=f"{OWN_THREADS}import")
    _imports.append(thread)
    thread.start()


def _finish_imports() -> None:
    """Two threads that import torch at once find half of it."""
    while _imports:
        _imports[0].join()
        del _imports[0]


def _overflow_file() -> Path:
    own = this_rank()
    return own.folder.path / f"output-rank-{own.world.rank}.txt"


def _run_task(payload: bytes) -> Reply:
    rank = this_rank().world.rank
    ready = _reply_to(_finish_imports)
    if ready.kind != "returned":
        return ready
    with capture_prints(_overflow_file()) as printed:
        try:
            task: RankTask = from_bytes(payload)
            function = from_bytes(task.function)
        except Exception as error:
            return unpacking_failure(rank, error)
        may_be_wrong = task.keep_arguments
        with keep_settings() if may_be_wrong else contextlib.nullcontext():
            reply = _reply_to(lambda: _with_group(task, function))
        if reply.kind == "returned":
            reply.unfreed += tuple(dict.fromkeys(free_leftovers()))
        else:
            forget_leftovers()
        reply.arguments = task.arguments if task.keep_arguments else ()
    reply.output = printed.text()
    return reply


def _with_group(task: RankTask, function: Callable) -> object:
    """Give the function what it was promised: a fresh communicator, or a group of torch.distributed, or neither."""
    recorder.ledger.run_size = task.world_size
    if task.backend:
        from course_utils.ranks.engine import torch_group

        size, number = task.world_size, task.communicator
        group_key = torch_group.GroupKey(size, number, task.backend)
        inner, must_be_new = _meet_on(size, number, not torch_group.can_reuse_group(group_key))
        if not task.keep_arguments:
            torch_group.print_different_settings(inner)
        if task.backend == "nccl":
            torch_group.take_own_gpu(inner)
        with torch_group.torch_group(inner, task.rendezvous, group_key, reuse=not must_be_new):
            _begin_together(task)
            return run_learner_code(function, *task.arguments, **task.keywords)
    if not task.with_comm:
        recorder.begin_function()
        return run_learner_code(function, *task.arguments, **task.keywords)
    inner = _begin_together(task)
    label = WORLD if task.world_size == this_rank().world.size else f"{WORLD} of {task.world_size}"
    comm = TracedComm(inner, label=label)
    recorder.communicator = comm, f"{EARLIER_RUNS}{task.communicator} of {task.world_size}"
    return run_learner_code(function, comm, *task.arguments, **task.keywords)


def _begin_together(task: RankTask) -> MPI.Intracomm:
    """Wait until all ranks of the run have come, so that its times show the work and not the post; start the clock."""
    inner = _meet_and_close_broken_groups(task.world_size, task.communicator)
    if task.world_size == this_rank().world.size:
        this_rank().use_world(inner)  # for code that says MPI.COMM_WORLD
    recorder.begin_function()
    return inner


def _meet_and_close_broken_groups(world_size: int, number: int) -> MPI.Intracomm:
    """A communicator as `_meet_on`'s. Groups of torch.distributed that are broken on one rank are closed on all."""
    groups = sys.modules.get("course_utils.trace.torch.process_groups")
    broken = bool(groups and groups.default_group_is_broken())
    inner, broken_somewhere = _meet_on(world_size, number, broken)
    if groups and broken_somewhere:
        groups.close_broken_groups(inner.rank == 0)
    if broken_somewhere:
        _meet_on(world_size, number)  # or a rank would still find the store that another one closes
    return inner


def _meet_on(world_size: int, number: int, answer: bool = False) -> tuple[MPI.Intracomm, bool]:
    """A communicator that works, on which all its ranks have come, and whether the answer was yes on any of them.

    Raises:
        MPIBroken: after an error of its own MPI promises nothing more (MPI 4.1, section 9.3): every call may fail.
    """
    own_answer, all_answers = array("i", [answer]), array("i", [0])
    try:
        inner = this_rank().communicators.get(world_size, number)
        if recorder.activity and recorder.activity.asked_to_stop:  # the others are told, too, and wait for nobody
            raise StopAsked(_BEGINNING)
        arrived = inner.Iallreduce(own_answer, all_answers, MPI.MAX).Test
        try:
            recorder.wait(arrived, _BEGINNING)
        except StopAsked:
            _wait_for_stragglers(arrived)
    except MPI.Exception as error:
        raise MPIBroken(str(error)) from error
    return inner, bool(all_answers[0])


def _wait_for_stragglers(arrived: Callable[[], bool]) -> None:
    """Go on, where all ranks have come: who has not heard of the stop does, and may need this one to make a group.

    Raises:
        StopAsked: some do not come.
    """
    until = time.monotonic() + _OTHERS_HEAR_OF_A_STOP
    while not arrived():
        if time.monotonic() > until:
            raise StopAsked(_BEGINNING)
        time.sleep(0.001)
    if recorder.activity:
        recorder.activity.write(RUNNING)  # so that the learner's code is interrupted


def _reply_to(work: Callable[[], object]) -> Reply:
    """Do the work; turn whatever happens into a reply, with what was recorded."""
    rank = this_rank().world.rank
    try:
        value = work()
        reply = Reply(rank, "returned", value=value)
    except StopAsked as stop:
        reply = Reply(rank, "interrupted", waiting=str(stop))
    except KeyboardInterrupt as error:
        asked = recorder.activity is None or recorder.activity.asked_to_stop
        reply = Reply(rank, "interrupted" if asked else "raised", error=describe_exception(error))
    except MPIBroken as error:
        reply = Reply(rank, "unusable", error=describe_exception(error, error_text(error)))
    except BaseException as error:
        reply = Reply(rank, "interrupted", waiting=recorder.abandoned_wait)
        if not recorder.abandoned_wait:
            reply = Reply(rank, "raised", error=describe_exception(error, error_text(error)))
    if reply.kind == "returned" and recorder.abandoned_wait:  # a thread that it has joined
        reply = Reply(rank, "interrupted", waiting=recorder.abandoned_wait)
    reply.ended = time.perf_counter()
    reply.events, reply.leaves_threads = recorder.events, recorder.leaves_threads()
    left_open = [request for request in recorder.open.values() if request.by_learner and not reply.leaves_threads]
    reply.take_notes(left_open, recorder.notes)
    reply.uncounted = tuple(recorder.uncounted)
    return reply


@contextlib.contextmanager
def _quiet(shell: Any) -> Iterator[None]:
    """Let IPython print and keep nothing of its own inside, as the reply carries errors and output.

    IPython has no settings for these; a subclass would change the cells of `%px --noblock` as well.
    """
    own = {
        "_showtraceback": lambda *args, **kwargs: None,
        "showtraceback": lambda *args, **kwargs: None,
        "_format_exception_for_storage": lambda *args, **kwargs: {},
        "_tee": lambda channel: contextlib.nullcontext(),  # which would keep each printed line for ever
        "ask_exit": _refuse_exit,
    }
    vars(shell).update(own)
    runner, shell.loop_runner = shell.loop_runner, run_coroutine
    try:
        yield
    finally:
        shell.loop_runner = runner
        for name in own:
            del vars(shell)[name]


def _execute(cell: str, communicator: int | None) -> Reply:
    from IPython import get_ipython
    from IPython.utils.capture import capture_output

    shell = get_ipython()
    shown: list[dict] = []

    def run() -> None:
        _finish_imports()
        recorder.ledger.run_size = this_rank().world.size if communicator is not None else 0
        if communicator is not None:
            this_rank().use_world(_meet_and_close_broken_groups(this_rank().world.size, communicator))
        recorder.begin_function()
        with capture_output(stdout=False, stderr=False, display=True) as rich, _quiet(shell):
            result = shell.run_cell(cell, store_history=True)
        shown.extend({"data": output.data, "metadata": output.metadata} for output in rich.outputs)
        if result.result is not None:
            data, metadata = shell.display_formatter.format(result.result)
            shown.append({"data": data, "metadata": metadata})
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            raise error

    with capture_prints(_overflow_file()) as printed:
        reply = _reply_to(run)
    _let_go_of_variables(shell.last_execution_result)
    reply.output = printed.text()
    reply.value = shown
    return reply


def _let_go_of_variables(result: Any) -> None:
    """Of the functions that an error came through: IPython keeps it, and so would keep a store with its port open."""
    error = result and (result.error_before_exec or result.error_in_exec)
    if error:
        traceback.clear_frames(error.__traceback__)


def _refuse_exit() -> None:
    """What `exit` and `quit` call in a cell."""
    raise SystemExit


def _pack(reply: Reply, pack: Callable[[Reply], Any] = pack_reply) -> Any:
    """The reply, packed, with the second at which its run began."""
    reply.began = recorder.began
    packed = pack(reply)
    recorder.reply_size = len(packed) if isinstance(packed, bytes) else 0
    return packed

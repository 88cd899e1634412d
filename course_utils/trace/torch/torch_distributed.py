"""Process groups of torch.distributed that record what they do and never block for good, as `trace.mpi` does for MPI.

Every call of torch.distributed, and of what stands on it (DistributedDataParallel's hooks in C++, FSDP2, pipelining,
collectives of objects), ends in a method of a process group. `TracedGroup` is a process group whose methods record the
call, pass it on to a plain group, and give back a `Work` whose wait is polled: a rank whose peers never come can say
where it waits, and can be asked to stop.
"""

import contextlib
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from course_utils.trace.activity import RUNNING
from course_utils.trace.blocking_calls import ThreadedCall
from course_utils.trace.buffers_in_use import watch_for_changes
from course_utils.trace.events import Agreement
from course_utils.trace.ledger import PROCESS_GROUPS
from course_utils.trace.recorder import SourceLine, StopAsked, current_line, recorder
from course_utils.trace.torch import waits_in_backward
from course_utils.trace.torch.torch_calls import COLLECTIVES, agreement_of, bytes_of, collective_call, message_call
from course_utils.trace.torch.torch_stores import Sockets, cut
from course_utils.trace.wait_graph import Need
from course_utils.words import ranks_in_words

SHORT_TIMEOUT = timedelta(seconds=30)
"""Whoever gives so short a timeout wants to see it run out, so nothing that it ends is called a deadlock."""


def _on_gpu(value: Any) -> bool:
    """Whether any of the tensors lies elsewhere than in the processor's memory."""
    if isinstance(value, torch.Tensor):
        return value.device.type != "cpu"
    return isinstance(value, (list, tuple)) and any(map(_on_gpu, value))


class _QueuedWork:
    """A synchronous operation of NCCL's: it stands in this thread's queue on the GPU, and torch makes no work for it.

    Source: torch's distributed_c10d, "Backward compatible with backends that don't sync at CPP level".
    """

    def __init__(self) -> None:
        self._done = torch.cuda.Event()
        self._done.record()

    def is_completed(self) -> bool:
        return self._done.query()

    def wait(self) -> bool:
        return True


class TracedWork(dist.Work):
    """What a group's methods return: `wait` polls, and records the event when the operation is done.

    With gloo, messages and reduce-scatters count as complete only once somebody has waited for them: a thread does.
    `can_be_polled` is False for these.
    Work on GPUs is waited for by the thread that asks: `wait` puts the operation before what this thread does next on
    the GPU (docs.pytorch.org, "Distributed communication package", synchronous and asynchronous collectives).

    An operation whose work has a future ends when that is done, in a thread of gloo's and maybe long before anybody
    asks: what travels behind a backward pass is drawn as long as it travelled.

    Attributes:
        by_learner: whether the learner's code began it, and so must wait for it.
        on_gpu: whether it works on a GPU's memory.
    """

    def __init__(
        self,
        work: Any,
        text: str,
        source_line: SourceLine,
        on_completion: Callable[[float], None],
        need: Need | None,
        by_learner: bool,
        on_gpu: bool,
        can_be_polled: bool,
        group: "TracedGroup | None" = None,
    ) -> None:
        super().__init__()
        self._group = weakref.ref(group) if group is not None else lambda: None
        self.by_learner, self.on_gpu = by_learner, on_gpu
        self.text, self.source_line, self.on_completion, self.need = text, source_line, on_completion, need
        self._plain: Any = work
        self._work = work if can_be_polled else ThreadedCall(work.wait)
        self._recorded = False
        self._ended: float | None = None
        self.future: torch.futures.Future | None = None
        self._own_future: torch.futures.Future[Any] = torch.futures.Future()
        self._abandoned = False
        recorder.add_open(self)
        if group is not None:
            group.add_work(self)
        if self._work is work and not on_gpu:  # its future is done when a GPU's queue has it, long before the end
            with contextlib.suppress(RuntimeError):  # this kind of work has no future
                self._plain.get_future().add_done_callback(self._note_end)

    def _note_end(self, _: Any) -> None:
        self._ended = time.perf_counter()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Return when the operation is done; raises what it raised.

        Raises:
            RuntimeError: the timeout is over, if there is one. Somebody who gives it may go on without the operation.
        """
        _, source_line = current_line()
        until = time.monotonic() + timeout.total_seconds() if timeout else math.inf
        need = None if timeout else self.need
        done = self._work.is_completed
        try:
            recorder.wait(lambda: done() or time.monotonic() > until, self.text, source_line or self.source_line, need)
        except KeyboardInterrupt:
            self._leave()
            raise
        if timeout and not done():
            recorder.remove_open(self)  # it was waited for
            raise RuntimeError(f"{self.text} was not done after the {timeout.total_seconds():g} s of wait(timeout=…)")
        self._finish()
        return True

    def is_completed(self) -> bool:
        """Is the operation done? Raises what it raised, as nobody may ask for that any more."""
        if not self._work.is_completed():
            recorder.note_failed_test(f"is_completed() of {self.text}", self.need)
            return False
        recorder.by_test = True
        try:
            if self.on_gpu:  # to wait would change what the GPU does next
                self._record_end()
            else:
                self._finish()
        finally:
            recorder.by_test = False
        return True

    def _finish(self) -> None:
        """Wait for what is done, and note its end; raises what it raised, in plain words."""
        try:
            self._work.wait()
        except Exception as error:
            self._leave()
            if isinstance(error, RuntimeError) and (text := _failure_text(self.text, str(error))):
                raise RuntimeError(text) from error
            raise
        self._record_end()

    def _leave(self) -> None:
        """Nobody waits for the operation any more, which will never be done, and breaks its group."""
        recorder.remove_open(self)
        if group := self._group():
            group.broken = True
        self.on_completion(float("inf"))

    def get_future(self) -> torch.futures.Future:
        """A future of our own, for who goes on with that: it can be left where the operation never ends.

        Whoever waits for it waits in C++, as DistributedDataParallel does at the end of its backward pass.
        """
        if self.on_gpu:  # torch's own puts whoever waits behind the operation, in the GPU's queue
            future = self._plain.get_future()
            future.add_done_callback(lambda _: self._record_end())
            return future
        if self.future is None:
            self.future = self._own_future.then(self._future_value)
            self._plain.get_future().add_done_callback(self._complete_future)
            waits_in_backward.watch_work(self)
        return self.future

    def abandon(self) -> None:
        """Who waits for the future goes on, with an error."""
        self._abandoned = True
        self._leave()
        self._complete_future()

    def _complete_future(self, _: Any = None) -> None:
        if not self._own_future.done():
            self._own_future.set_result(None)

    def _future_value(self, _: Any) -> Any:
        # An error must be raised in here: `set_exception` would hand it to C++ as if it were the tensors.
        if self._abandoned:
            raise StopAsked(self.text)
        self._record_end()
        return self._plain.get_future().value()

    def _record_end(self) -> None:
        if not self._recorded:
            self._recorded = True
            recorder.remove_open(self)
            if group := self._group():
                group.remove_work(self)
            self.on_completion(self._ended or time.perf_counter())

    def result(self) -> Any:
        """What torch's own work gives."""
        return self._plain.result()

    def _source_rank(self) -> int:
        return self._plain._source_rank()


def _failure_text(call: str, error: str) -> str:
    """What an error of gloo's means for a call; "" where that is not known."""
    if "Timed out" in error:
        return f"{call} ran into the timeout of its process group: not all ranks that it needs have called it in time"
    is_gone = "Connection closed by peer" in error or "Connection reset by peer" in error
    if is_gone or "Pair is not connected" in error:
        return f"{call} cannot go on: a rank that it needs has left the group, by destroy_process_group or an error"
    if "enforce fail at" in error or "gloo/transport" in error:
        return f"{call} failed inside gloo, which sends the messages; mostly, another rank called something different"
    return ""


class TracedGroup(dist.ProcessGroup):
    """Stands for torch's class in the making of groups: one group that records, before a plain one that communicates.

    Attributes:
        recording: whether calls are recorded, in all groups.
        ledger_name: its name in the ledger. It lives on from one cell to the next, as the group does.
        members: for each rank of the group, the rank of the run.
        known: whether it is known which ranks of the run they are; else there are no events, which have peers.
        awaited: whether the graph of waits may know what its operations need. It may not where other processes than
            ranks take part, or where a short timeout of the learner's ends what never comes.
        dismissed: whether the learner's code has destroyed it while the rank was asked to stop.
        broken: whether an operation was left that was not done. What comes after it would meet it on other ranks.
    """

    recording = True
    ledger_name = f"{PROCESS_GROUPS}of this rank alone"
    members: list[int] = []  # noqa: RUF012 - until `introduce` gives each group its own
    known = True
    awaited = False
    broken = dismissed = False
    _names: set[str] = set()  # noqa: RUF012 - shared by all

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg] # the stubs know another constructor alone
        self._plain: Any = dist.ProcessGroup(store, rank, size)
        self._unfinished: weakref.WeakSet[TracedWork] = weakref.WeakSet()
        self._connections: Sockets = set()
        self.leave: Callable[[], None] = lambda: None
        self.members = list(range(size))

    def introduce(
        self,
        name: str,
        members: list[int],
        connections: Sockets,
        leave: Callable[[], None] = lambda: None,
        *,
        awaited: bool,
    ) -> None:
        """Tell the group what its ranks have learnt of each other, and which connections it has made.

        `leave`: takes back what this rank has written where they met.
        """
        self._connections, self.leave = connections, leave
        self.ledger_name, self.members, self.awaited = f"{PROCESS_GROUPS}{name}", members, awaited
        self._names.add(self.ledger_name)

    @classmethod
    def forget_names(cls) -> set[str]:
        """The names of all groups that there have been, which are new again from now on."""
        names, cls._names = cls._names, set()
        return names

    @classmethod
    def stop_recording(cls) -> None:
        """In a process that a rank has forked nothing is the rank's."""
        cls.recording = False

    def add_work(self, work: TracedWork) -> None:
        """An operation has begun."""
        self._unfinished.add(work)

    def remove_work(self, work: TracedWork) -> None:
        """It is done."""
        self._unfinished.discard(work)

    def disconnect(self) -> None:
        """End on this rank whatever is under way over gloo, which knows no way to abort it; its destructor waits."""
        cut(self._connections)

    @property
    def is_clean(self) -> bool:
        """Whether nothing can be under way in the group."""
        return not (self.broken or self._unfinished)

    # What torch tells a group when it makes it holds for both.

    def _set_default_backend(self, backend: Any) -> None:
        super()._set_default_backend(backend)
        self._plain._set_default_backend(backend)

    def _register_backend(self, *args: Any) -> None:
        super()._register_backend(*args)
        self._plain._register_backend(*args)

    def _set_group_name(self, name: Any) -> None:
        super()._set_group_name(name)
        self._plain._set_group_name(name)

    def __repr__(self) -> str:
        return f"<{dist.get_backend(self)} {ranks_in_words(self.members)}>"

    def _ledger_entry(self) -> tuple[str, list[int]]:
        """The name of this group in the ledger, and its ranks."""
        return self.ledger_name, self.members

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int) -> dist.Work:
        """As torch's."""
        return self._message("send", self._plain.send, tensors, dst, tag)

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int) -> dist.Work:
        """As torch's."""
        return self._message("recv", self._plain.recv, tensors, src, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> dist.Work:
        """As torch's."""
        return self._message("recv", lambda *_: self._plain.recv_anysource(tensors, tag), tensors, None, tag)

    def _message(self, kind: str, start: Callable, tensors: list[torch.Tensor], end: int | None, tag: int) -> dist.Work:
        if not self.recording:
            return start(tensors, end, tag)
        line, source_line = current_line()
        began = time.perf_counter()
        group, members = self._ledger_entry()
        peer = None if end is None else members[end]
        as_called = None if end is None else dist.get_global_rank(self, end)
        name, text, by_learner = message_call(kind, as_called, tag, sys._getframe(2))
        sends, work = kind == "send", start(tensors, end, tag)
        known = self.known  # what is called at the end must not keep the group alive
        need: Need
        if sends and peer is not None:
            need = recorder.ledger.add_send(group, members, peer, tag)
        else:
            need = recorder.ledger.add_receive(group, members, peer, tag)

        def on_completion(stop: float) -> None:
            source = peer
            if not known:
                return
            if not sends and stop < float("inf"):
                source = members[work._source_rank()] if peer is None else peer
                recorder.ledger.add_received(group, source, tag)
            recorder.add(name, kind, began, stop, peer=source, tag=tag, size=bytes_of(tensors), line=line, comm=group)

        sent = _memory_of(tensors[0]) if sends and name == "isend" and tensors[0].device.type == "cpu" else None
        on_gpu = _on_gpu(tensors)
        traced = TracedWork(
            work, text, source_line, on_completion, self._awaited(need), by_learner, on_gpu, on_gpu, self
        )
        if sent is not None:
            traced.on_completion = watch_for_changes(sent, traced, on_completion)
        return traced

    def _awaited(self, need: Need) -> Need | None:
        return need if self.awaited else None

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """As torch's, which blocks by itself until its time is up, and says who is missing."""
        began = time.perf_counter()
        line, source_line = current_line()
        given = () if timeout is None else (timeout,)
        waiting = ThreadedCall(lambda: self._plain.monitored_barrier(*given, wait_all_ranks=wait_all_ranks))
        need = recorder.ledger.add_collective(*self._ledger_entry(), Agreement("monitored_barrier"))
        end = float("inf")
        try:
            awaited = None if timeout and timeout <= SHORT_TIMEOUT else self._awaited(need)
            recorder.wait(waiting.is_completed, "monitored_barrier", source_line, awaited)
            waiting.wait()
            end = time.perf_counter()
        except RuntimeError as error:  # its first line says who is missing, and the rest what gloo thinks of it
            raise RuntimeError(str(error).partition("\n")[0]) from error
        finally:
            recorder.add_collective("monitored_barrier", need.agreement, need, began, end, 0, line)


def _memory_of(tensor: torch.Tensor) -> np.ndarray:
    """The bytes of a contiguous tensor, of any dtype: NumPy knows no bfloat16. It shares the tensor's memory."""
    return tensor.detach().view(-1).view(torch.uint8).numpy()


_DONE_WHEN_WAITED_FOR = ("reduce_scatter", "reduce_scatter_single", "reduce_scatter_single_coalesced")
"""Methods whose work gloo calls complete only then."""


def _recorded(method: str, method_name: str, contribution: int | None) -> Callable:
    """The method of a traced group that records a collective."""

    def collective(self: TracedGroup, *args: Any, **kwargs: Any) -> dist.Work | None:
        start = getattr(self._plain, method)
        if not self.recording:
            return start(*args, **kwargs)
        name, text, by_learner = collective_call(method_name, sys._getframe().f_back)
        size = 0 if contribution is None else bytes_of(args[contribution])
        line, source_line = current_line()
        began = time.perf_counter()
        need = recorder.ledger.add_collective(
            *self._ledger_entry(), agreement_of(name, method, contribution, args, kwargs)
        )
        if recorder.activity and recorder.in_call:  # where it is another collective elsewhere, gloo may end a process
            recorder.activity.write(RUNNING, snapshot=recorder.ledger.collective_snapshot(need))
        with recorder.ledger.remove_if_rejected(need):
            work = start(*args, **kwargs)

        if work is None and torch.cuda.is_current_stream_capturing():
            return None  # a CUDA graph is being recorded: nothing is done, and nothing may be asked
        if work is None:
            work = _QueuedWork()

        known = self.known  # what is called at the end must not keep the group alive

        def on_completion(end: float) -> None:
            if known:
                recorder.add_collective(name, need.agreement, need, began, end, size, line)

        on_gpu = isinstance(work, _QueuedWork) or _on_gpu(args)
        can_be_polled = on_gpu or method not in _DONE_WHEN_WAITED_FOR
        return TracedWork(
            work, text, source_line, on_completion, self._awaited(need), by_learner, on_gpu, can_be_polled, self
        )

    return collective


for _method, (_name, _contribution) in COLLECTIVES.items():
    setattr(TracedGroup, _method, _recorded(_method, _name, _contribution))


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, calls are torch's own: recording one costs time, for a message a thread and so about a millisecond."""
    before, TracedGroup.recording = TracedGroup.recording, False
    try:
        yield
    finally:
        TracedGroup.recording = before

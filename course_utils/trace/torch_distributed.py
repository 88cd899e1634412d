"""Process groups of torch.distributed that record what they do and never block for good, as `trace.mpi` does for MPI.

Every call of torch.distributed, and of what stands on it (DistributedDataParallel's hooks in C++, FSDP2, pipelining,
collectives of objects), ends in a method of a process group. `TracedGroup` is a process group whose methods record the
call, pass it on to a plain group, and give back a `Work` whose wait is polled: a rank whose peers never come can say
where it waits, and can be asked to stop.
"""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from course_utils.trace import waits_in_backward
from course_utils.trace.activity import RUNNING
from course_utils.trace.blocking_calls import ThreadedCall
from course_utils.trace.buffers_in_use import watch_for_changes
from course_utils.trace.events import Agreement
from course_utils.trace.recorder import SourceLine, StopAsked, current_line, recorder
from course_utils.trace.torch_calls import COLLECTIVES, agreement_of, bytes_of, collective_call, message_call
from course_utils.trace.wait_graph import Need
from course_utils.words import ranks_in_words


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
    ) -> None:
        super().__init__()
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
        if self._work is work and not on_gpu:  # its future is done when a GPU's queue has it, long before the end
            with contextlib.suppress(RuntimeError):  # this kind of work has no future
                self._plain.get_future().add_done_callback(self._note_end)

    def _note_end(self, _: Any) -> None:
        self._ended = time.perf_counter()

    def wait(self, timeout: Any = None) -> bool:
        """Return when the operation is done; raises what it raised."""
        _, source_line = current_line()
        try:
            recorder.wait(self._work.is_completed, self.text, source_line or self.source_line, self.need)
        except KeyboardInterrupt:
            self.on_completion(float("inf"))
            raise
        self._work.wait()
        self._record_end()
        return True

    def is_completed(self) -> bool:
        """Is the operation done?"""
        done = self._work.is_completed()
        if done:
            recorder.by_test = True
            self._record_end()
            recorder.by_test = False
        return done

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
        self.on_completion(float("inf"))
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
            self.on_completion(self._ended or time.perf_counter())

    def result(self) -> Any:
        """What torch's own work gives."""
        return self._plain.result()

    def _source_rank(self) -> int:
        return self._plain._source_rank()


class TracedGroup(dist.ProcessGroup):
    """Stands for torch's class in the making of groups: one group that records, before a plain one that communicates.

    Attributes:
        recording: whether calls are recorded, in all groups.
    """

    recording = True

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg] # the stubs know another constructor alone
        self._plain: Any = _PlainGroup(store, rank, size)

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
        return f"<{dist.get_backend(self)} {ranks_in_words(self._ledger_entry()[1])}>"

    def _ledger_entry(self) -> tuple[str, list[int]]:
        """The name of this group in the ledger, and its ranks."""
        return self._name, dist.get_process_group_ranks(self)

    @functools.cached_property
    def _name(self) -> str:
        return f"{dist.get_backend(self)} {self.group_name}"

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
        name, text, by_learner = message_call(kind, peer, tag, sys._getframe(2))
        sends, work = kind == "send", start(tensors, end, tag)
        need: Need
        if sends and peer is not None:
            need = recorder.ledger.add_send(group, members, peer, tag)
        else:
            need = recorder.ledger.add_receive(group, members, peer, tag)

        def on_completion(stop: float) -> None:
            source = peer
            if not sends and stop < float("inf"):
                source = members[work._source_rank()] if peer is None else peer
                recorder.ledger.add_received(group, source, tag)
            recorder.add(name, kind, began, stop, peer=source, tag=tag, size=bytes_of(tensors), line=line, comm=group)

        sent = _memory_of(tensors[0]) if sends and name == "isend" and tensors[0].device.type == "cpu" else None
        on_gpu = _on_gpu(tensors)
        traced = TracedWork(work, text, source_line, on_completion, need, by_learner, on_gpu, can_be_polled=on_gpu)
        if sent is not None:
            traced.on_completion = watch_for_changes(sent, traced, on_completion)
        return traced

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """As torch's, which blocks by itself until its time is up."""
        began = time.perf_counter()
        line, source_line = current_line()
        given = () if timeout is None else (timeout,)
        waiting = ThreadedCall(lambda: self._plain.monitored_barrier(*given, wait_all_ranks=wait_all_ranks))
        need = recorder.ledger.add_collective(*self._ledger_entry(), Agreement("monitored_barrier"))
        end = float("inf")
        try:
            recorder.wait(waiting.is_completed, "monitored_barrier", source_line, need)
            waiting.wait()
            end = time.perf_counter()
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
        if recorder.activity:  # where it is another collective elsewhere, gloo may end this process
            recorder.activity.write(RUNNING, snapshot=recorder.ledger.collective_snapshot(need))
        with recorder.ledger.remove_if_rejected(need):
            work = start(*args, **kwargs)

        if work is None and torch.cuda.is_current_stream_capturing():
            return None  # a CUDA graph is being recorded: nothing is done, and nothing may be asked
        if work is None:
            work = _QueuedWork()

        def on_completion(end: float) -> None:
            recorder.add_collective(name, need.agreement, need, began, end, size, line)

        on_gpu = isinstance(work, _QueuedWork) or _on_gpu(args)
        can_be_polled = on_gpu or method not in _DONE_WHEN_WAITED_FOR
        return TracedWork(work, text, source_line, on_completion, need, by_learner, on_gpu, can_be_polled)

    return collective


for _method, (_name, _contribution) in COLLECTIVES.items():
    setattr(TracedGroup, _method, _recorded(_method, _name, _contribution))


_PlainGroup = dist.ProcessGroup
_make_group = distributed_c10d._new_process_group_helper


def _make_group_together(
    size: int,
    group_rank: int | None,
    ranks: Sequence[int],
    backend: str,
    store: dist.Store,
    name: Any,
    **more: Any,
) -> tuple:
    """Make a group of some ranks once all of them ask for it: torch waits for them in C++, and cannot be left there."""
    if ranks and group_rank is not None and TracedGroup.recording:
        label = f"new_group {name} of {ranks}"
        need = recorder.ledger.add_collective(label, list(ranks), Agreement("new_group"))
        keys = [f"course {label}, time {need.number}, {rank}" for rank in ranks]
        store.set(keys[group_rank], "here")
        recorder.wait(lambda: store.check(keys), "new_group", current_line()[1], need)
    return _make_group(size, group_rank, ranks, backend, store, name, **more)


def record_calls() -> None:
    """Groups that are made from now on record their calls; a second call changes nothing."""
    for name, ours in {"ProcessGroup": TracedGroup, "_new_process_group_helper": _make_group_together}.items():
        setattr(distributed_c10d, name, ours)


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, calls are torch's own: recording one costs time, for a message a thread and so about a millisecond."""
    before, TracedGroup.recording = TracedGroup.recording, False
    try:
        yield
    finally:
        TracedGroup.recording = before

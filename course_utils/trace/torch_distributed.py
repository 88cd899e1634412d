"""Records the calls of torch.distributed, and makes their waits polled, as `trace.mpi` does for MPI.

`record_calls` exchanges the functions of the module for traced ones. They start the operation asynchronously and test
until it is done: a rank whose peers never come can say where it waits, and can be asked to stop.
"""

import contextlib
import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from course_utils.trace.books import OURS
from course_utils.trace.recorder import here, recorder
from course_utils.trace.waiting import Message, Need, Receive, Send

# The argument whose bytes are this rank's contribution. torch's older names for the `_single` ones call these.
_COLLECTIVES = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "gather": "tensor",
    "scatter": "scatter_list",
    "all_gather": "tensor",
    "all_gather_single": "input_tensor",
    "reduce_scatter": "input_list",
    "reduce_scatter_single": "input",
    "all_to_all": "input_tensor_list",
    "all_to_all_single": "input",
    "barrier": "nothing",
}
_ALIKE = ("all_reduce", "broadcast", "reduce", "all_gather")
"""Collectives for which every rank brings a tensor of the same size."""
_MESSAGES = {"send": ("isend", "send", "dst"), "recv": ("irecv", "recv", "src")}
_PLAIN = {name: getattr(distributed_c10d, name) for name in (*_COLLECTIVES, "send", "recv", "isend", "irecv")}


def _bytes_of(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes_of, value))
    return 0


class _InThread:
    """What counts as complete only once somebody has waited for it: a thread does, and can be asked.

    With gloo these are messages, and the reduce-scatters, which copy their result in `wait`.
    """

    def __init__(self, work: Any) -> None:
        self._work, self._error = work, None
        self._thread = threading.Thread(target=self._wait, daemon=True, name=f"{OURS}gloo")
        self._thread.start()

    def _wait(self) -> None:
        try:
            self._work.wait()
        except Exception as error:
            self._error = error

    def is_completed(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        if self._error is not None:
            raise self._error


class TracedWork:
    """What an asynchronous call returns: `wait` polls, and records the event when the operation is done.

    An operation whose work has a future ends when that is done, in a thread of gloo's and maybe long before anybody
    asks: what travels behind a backward pass is drawn as long as it travelled.
    """

    def __init__(self, work: Any, text: str, place: str, finished: Callable[[float], None], need: Need) -> None:
        self._work, self.text, self.place, self._finished, self.need = work, text, place, finished, need
        self._recorded = False
        self._ended: float | None = None
        recorder.opened(self)

    def note_end(self) -> None:
        """From now on know when the operation ends, whether somebody waits for it or not."""
        with contextlib.suppress(RuntimeError, AttributeError):  # this kind of work has no future
            self._work.get_future().add_done_callback(self._note)

    def _note(self, _: Any) -> None:
        self._ended = time.perf_counter()

    def wait(self, timeout: Any = None) -> bool:
        """Return when the operation is done; raises what it raised."""
        _, place = here()
        try:
            recorder.wait(self._work.is_completed, self.text, place or self.place, self.need)
        except KeyboardInterrupt:
            self._finished(float("inf"))
            raise
        self._work.wait()
        self._record()
        return True

    def is_completed(self) -> bool:
        """Is the operation done?"""
        done = self._work.is_completed()
        if done:
            self._record()
        return done

    def get_future(self) -> Any:
        """torch's future, for who goes on with that: the operation is waited for as soon as it is done."""
        future = self._work.get_future()
        future.add_done_callback(lambda _: self._record())
        return future

    def _record(self) -> None:
        if not self._recorded:
            self._recorded = True
            recorder.closed(self)
            self._finished(self._ended or time.perf_counter())

    @property
    def __class__(self) -> type:
        """FSDP2 waits only for what is a `Work` of torch's, and would compute with what has not come yet."""
        return dist.Work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


def _group(given: Mapping[str, Any]) -> tuple[str, list[int]]:
    """The name of the group that a call is given, and its ranks."""
    group = given.get("group") or dist.group.WORLD
    return f"gloo {group.group_name}", dist.get_process_group_ranks(group)


def _whole_name(name: str, given: Mapping[str, Any]) -> str:
    """What must be the same on all ranks of a collective: its name, its root, and the size of a tensor of each rank."""
    size = f" of {given['tensor'].numel()} numbers" if name in _ALIKE else ""
    roots = [given[root] for root in ("src", "dst", "group_src", "group_dst") if given.get(root) is not None]
    return f"{name}{size}{f', root {roots[0]}' if any(roots) else ''}"


def _traced_collective(name: str, contribution: str) -> Callable:
    plain = _PLAIN[name]
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def traced(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        asynchronous = given.get("async_op", False)
        size = _bytes_of(given.get(contribution))
        line, place = here()
        began = time.perf_counter()
        work = plain(**(given | {"async_op": True}))
        if work is None:  # this rank is not in the group
            return None
        if name.startswith("reduce_scatter"):
            work = _InThread(work)

        def finished(end: float) -> None:
            recorder.add(name, "collective", began, end, size=size, line=line)

        need = recorder.books.meet(*_group(given), _whole_name(name, given))
        traced_work = TracedWork(work, name, place, finished, need)
        if asynchronous:
            traced_work.note_end()
            return traced_work
        traced_work.wait()
        return None

    return traced


def _traced_message(name: str, start: str, kind: str, peer_name: str) -> Callable:
    plain = _PLAIN[start]

    @functools.wraps(_PLAIN[name])
    def traced(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        peer = args[0] if args else kwargs.get(peer_name)
        if peer is None and kwargs.get(f"group_{peer_name}") is not None:
            peer = dist.get_global_rank(kwargs.get("group") or dist.group.WORLD, kwargs[f"group_{peer_name}"])
        tag = kwargs.get("tag", args[2] if len(args) > 2 else 0)
        line, place = here()
        began = time.perf_counter()
        group, members = _group(kwargs | ({"group": args[1]} if len(args) > 1 else {}))
        recorder.books.members[group] = members
        message = Message(group, peer, tag)
        if kind == "send":
            recorder.books.sent[message] += 1
        work = _InThread(plain(tensor, *args, **kwargs))

        def finished(end: float) -> None:
            recorder.add(name, kind, began, end, peer=peer, tag=tag, size=_bytes_of(tensor), line=line)
            if kind == "recv" and end < float("inf"):
                recorder.books.received[message] += 1

        need = Receive(message) if kind == "recv" else None if peer is None else Send(message)
        traced_work = TracedWork(work, f"{name}({peer_name}={peer})", place, finished, need)
        if name.startswith("i"):
            return traced_work
        traced_work.wait()
        return peer

    return traced


def record_calls() -> None:
    """Exchange the functions of torch.distributed for traced ones; a second call changes nothing."""
    if dist.all_reduce is not _PLAIN["all_reduce"]:
        return
    traced = {name: _traced_collective(name, contribution) for name, contribution in _COLLECTIVES.items()}
    for blocking, (start, kind, peer_name) in _MESSAGES.items():
        traced[blocking] = _traced_message(blocking, start, kind, peer_name)
        traced[start] = _traced_message(start, start, kind, peer_name)
    _exchange(traced)


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, calls are torch's own: recording one costs time, for a message a thread and so about a millisecond."""
    recorded = {name: getattr(distributed_c10d, name) for name in _PLAIN}
    _exchange(_PLAIN)
    try:
        yield
    finally:
        _exchange(recorded)


def _exchange(functions: Mapping[str, Callable]) -> None:
    for name, function in functions.items():
        setattr(dist, name, function)
        setattr(distributed_c10d, name, function)

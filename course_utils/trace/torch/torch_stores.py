"""Stores of torch.distributed, at which processes meet, and the meeting itself, whose waits are polled.

torch waits in C++ for the process that serves a store, for those that will use it, for a key that a process sets, and
for the other processes of a group. No signal reaches a rank there. Here each of these waits can be seen and left.
"""

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, NamedTuple

import torch.distributed as dist
from torch.distributed import Store

from course_utils import system
from course_utils.trace.blocking_calls import ThreadedCall
from course_utils.trace.recorder import SourceLine, current_line, recorder
from course_utils.trace.wait_graph import Need

_EAGER_SECONDS = 0.05  # a store is asked at full speed for so long, then with pauses
_PAUSE = 0.005
_CONNECT_SECONDS = 0.5


class OuterCall(NamedTuple):
    """The call of torch.distributed that the learner has made, and within which a store is waited for."""

    text: str
    source_line: SourceLine
    need: Need | None


_outer_call: ContextVar[OuterCall | None] = ContextVar("outer call", default=None)


@contextlib.contextmanager
def inside_call(text: str, need: Need | None = None, source_line: SourceLine | None = None) -> Iterator[None]:
    """Inside, whatever waits for a store waits in this call; arguments as `Recorder.wait`'s.

    `source_line`: the learner's line that is being run, if it is not given.
    """
    token = _outer_call.set(OuterCall(text, current_line()[1] if source_line is None else source_line, need))
    try:
        yield
    finally:
        _outer_call.reset(token)


_polled_process = 0


def is_polled() -> bool:
    """Whether waits of this thread are polled: those of the main thread, in the rank and in none that it has forked."""
    return threading.current_thread() is threading.main_thread() and os.getpid() == _polled_process


def wait_until(done: Callable[[], bool], text: str) -> None:
    """Return when `done()`. A report names the call that the learner has made, and `text` where there is none."""
    call = _outer_call.get() or OuterCall(text, current_line()[1], None)
    began, asked = time.monotonic(), 0.0
    question = [done]

    def ask() -> bool:
        nonlocal asked
        now = time.monotonic()
        if now - began > _EAGER_SECONDS and now - asked < _PAUSE:
            return False
        asked = now
        return question[0]()

    try:
        recorder.wait(ask, call.text, call.source_line, call.need)
    finally:
        question.clear()  # the recorder keeps what was left, and with it a store and its port


def seconds_in_words(timeout: timedelta) -> str:
    """ "2 s"."""
    return f"{timeout.total_seconds():g} s"


# --- keys -------------------------------------------------------------------------------------------------------------


def wait_for_keys(store: Store, keys: Sequence[str], timeout: timedelta | None, text: str) -> None:
    """Return when a store has all keys.

    Raises:
        DistStoreError: it did not get them in time.
    """
    if store.check(list(keys)):
        return
    allowed: timedelta = timeout or store.timeout  # type: ignore[attr-defined] # its stub forgets it
    until = time.monotonic() + allowed.total_seconds()
    wait_until(lambda: store.check(list(keys)) or time.monotonic() > until, text)
    missing = [key for key in keys if not store.check([key])]
    if missing:
        names = " and ".join(map(repr, missing))
        raise dist.DistStoreError(f"{text} was given up after {seconds_in_words(allowed)}: no process has set {names}")


_plain_wait, _plain_get, _plain_multi_get = Store.wait, Store.get, Store.multi_get


def _wait(self: Store, keys: list[str], timeout: timedelta | None = None) -> None:
    if is_polled():
        wait_for_keys(self, keys, timeout, f"{type(self).__name__}.wait({keys})")
    _plain_wait(self, keys, *([] if timeout is None else [timeout]))


def _get(self: Store, key: str) -> bytes:
    if is_polled():
        wait_for_keys(self, [key], None, f"{type(self).__name__}.get({key!r})")
    return _plain_get(self, key)


def _multi_get(self: Store, keys: list[str]) -> list[bytes]:
    if is_polled():
        wait_for_keys(self, keys, None, f"{type(self).__name__}.multi_get({keys})")
    return _plain_multi_get(self, keys)


# --- what is made only together with other processes ------------------------------------------------------------------

_plain_tcp_store = dist.TCPStore.__init__


def _make_tcp_store(
    self: dist.TCPStore,
    host_name: str,
    port: int,
    world_size: int | None = None,
    is_master: bool = False,
    timeout: timedelta = timedelta(seconds=300),
    *more: Any,
    **options: Any,
) -> None:
    def make() -> None:
        _plain_tcp_store(self, host_name, port, world_size, is_master, timeout, *more, **options)

    if not is_polled():
        return make()
    text = f"TCPStore({host_name!r}, {port})"
    until = time.monotonic() + timeout.total_seconds()
    while True:
        if not is_master:
            _wait_for_server(host_name, port, timeout, text)
        making = ThreadedCall(make)
        try:
            wait_until(making.is_completed, text)
        except KeyboardInterrupt:
            if is_master:
                _end_wait_for_clients(host_name, port, world_size or 1)
            raise
        try:
            return making.wait()
        except dist.DistNetworkError as error:
            if "EADDRINUSE" in str(error):
                raise dist.DistNetworkError(
                    f"port {port} is in use, by a process group that is still open or by a different program; "
                    "choose a different port"
                ) from error
            if is_master or time.monotonic() > until:
                raise  # else it may have been the server of an earlier group, which was about to end


def _wait_for_server(host: str, port: int, timeout: timedelta, text: str) -> None:
    """Return when a process listens at an address.

    Raises:
        DistNetworkError: none did in time.
    """
    until = time.monotonic() + timeout.total_seconds()
    wait_until(lambda: _listens(host, port) or time.monotonic() > until, text)
    if time.monotonic() > until and not _listens(host, port):
        raise dist.DistNetworkError(
            f"{text} was given up after {seconds_in_words(timeout)}: no process listens there, as rank 0 should"
        )


def _listens(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), _CONNECT_SECONDS):
        return True
    return False


def _end_wait_for_clients(host: str, port: int, clients: int) -> None:
    """Be the clients for which a server waits that was left, so that its port becomes free."""
    for _ in range(clients):
        client = dist.TCPStore.__new__(dist.TCPStore)
        with contextlib.suppress(Exception):
            _plain_tcp_store(client, host, port, clients, False, timedelta(seconds=1))


_plain_gloo = dist.ProcessGroupGloo.__init__ if dist.is_gloo_available() else None


def _make_gloo(self: Any, *arguments: Any, **options: Any) -> None:
    assert _plain_gloo
    if not is_polled():
        return _plain_gloo(self, *arguments, **options)
    making = ThreadedCall(lambda: _plain_gloo(self, *arguments, **options))
    wait_until(making.is_completed, "ProcessGroupGloo")
    return making.wait()


Sockets = set[tuple[int, int]]
"""Of this process, each by its descriptor and its inode."""


def open_sockets() -> Sockets:
    """Those that are open now; none where a system does not show them."""
    found = set()
    for descriptor in system.open_files():
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode):
                found.add((descriptor, status.st_ino))
    return found


def cut(sockets: Sockets) -> None:
    """End whatever is under way on these connections, as far as they are still open."""
    for descriptor, inode in sockets:
        with contextlib.suppress(OSError):
            if os.fstat(descriptor).st_ino == inode:
                with socket.socket(fileno=os.dup(descriptor)) as connection:
                    connection.getpeername()  # a socket that listens has no peer, and gloo dies with it
                    connection.shutdown(socket.SHUT_RDWR)


def poll_stores() -> None:
    """From now on waits for stores, and for all processes of a group over gloo, are polled in this process."""
    global _polled_process
    _polled_process = os.getpid()
    ours: list[tuple[Any, str, Callable]] = [
        (Store, "wait", _wait),
        (Store, "get", _get),
        (Store, "multi_get", _multi_get),
        (dist.TCPStore, "__init__", _make_tcp_store),
    ]
    if _plain_gloo:
        ours.append((dist.ProcessGroupGloo, "__init__", _make_gloo))
    for owner, name, function in ours:
        setattr(owner, name, function)

"""The making and the end of process groups of torch.distributed, the course's own ones and those of learners.

The ranks of a group tell each other which ranks of the run they are, through the store at which they meet. So the trace
knows who is missing, and two groups that have the same name in torch have different names in the ledger.
"""

import contextlib
import functools
import inspect
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlparse

import psutil
import torch.distributed as dist
from torch.distributed import distributed_c10d, rpc

from course_utils.trace.events import Agreement
from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.recorder import StopAsked, recorder
from course_utils.trace.torch.torch_distributed import SHORT_TIMEOUT, TracedGroup
from course_utils.trace.torch.torch_stores import (
    inside_call,
    is_polled,
    open_sockets,
    poll_stores,
    seconds_in_words,
    wait_until,
)
from course_utils.trace.wait_graph import Collective
from course_utils.words import ranks_in_words

_TRACED = {"gloo", "nccl"}
"""Backends whose groups are traced; others, such as "fake", are torch's own affair."""
_LOOK_FOR_OUTSIDERS = 0.2  # seconds


@dataclass
class CourseGroup:
    """The default group that a call with `backend=` makes. It stays for the next such call, and makes room for others.

    Attributes:
        group: None where there is none.
        serving: whether such a call is under way.
    """

    group: dist.ProcessGroup | None = None
    serving: bool = False

    def is_default(self) -> bool:
        """Whether the default group is this one."""
        return self.group is not None and dist.group.WORLD is self.group


course_group = CourseGroup()


# --- the meeting ------------------------------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """What the ranks of a group know of each other once all have come.

    Attributes:
        token: the same on all of them, and different for every group.
        members: for each rank of the group, the rank of the run.
        complete: whether all of them are ranks; a learner's program may start other processes that join.
        leave: takes back what this rank has written.
    """

    token: str
    members: list[int]
    complete: bool
    leave: Callable[[], None]


def _alone(size: int) -> Meeting:
    """For a group of which the trace can know nothing."""
    return Meeting(uuid.uuid4().hex, list(range(size)), False, lambda: None)


class _Attendance:
    """Which ranks of a group have come to a store.

    Each writes its rank of the run under a key of its own. A process that the course does not trace writes none, but
    gloo's own key with its address, as `gloo_key` has it.
    """

    def __init__(self, store: dist.Store, label: str, group_rank: int, size: int, gloo_key: Callable[[int], str]):
        self._store, self._gloo_key, self._group_rank = store, gloo_key, group_rank
        self._keys = [f"course {label} {rank}" for rank in range(size)]
        self._own = self._keys[group_rank]
        self._missing = list(range(size))
        self._token = uuid.uuid4().hex
        self._looked = time.monotonic()
        self.outsiders = False
        entry = store.compare_set(self._own, "", f"{recorder.rank} {self._token}").decode()
        holder = int(entry.partition(" ")[0])
        if holder != recorder.rank:
            raise ValueError(
                f"rank={group_rank} is given to the group by rank {holder} and by rank {recorder.rank}; "
                "each process needs a rank of its own"
            )

    def all_here(self) -> bool:
        """Whether nobody is waited for any more: all have come, or one has that will never write its key."""
        if self._store.check([self._keys[rank] for rank in self._missing]):
            return True
        if time.monotonic() - self._looked > _LOOK_FOR_OUTSIDERS:
            self._looked = time.monotonic()
            joined = [rank for rank in self._missing if self._store.check([self._gloo_key(rank)])]
            self._missing = self.missing()
            self.outsiders = bool(set(joined) & set(self._missing))
        return self.outsiders

    def missing(self) -> list[int]:
        """The ranks of the group that have not come."""
        return [rank for rank in self._missing if not self._store.check([self._keys[rank]])]

    def leave(self) -> None:
        """Take back what this rank has written, gloo's address too, so that nobody finds it who tries again."""
        with contextlib.suppress(Exception):  # the store may be gone
            self._store.delete_key(self._own)
            self._store.delete_key(self._gloo_key(self._group_rank))

    def result(self) -> Meeting:
        """What all have written."""
        entries = [self._store.get(key).decode().split() for key in self._keys]
        return Meeting(entries[0][1], [int(rank) for rank, _ in entries], True, self.leave)


def _meet(attendance: _Attendance, text: str, timeout: timedelta) -> Meeting | None:
    """Wait until all ranks of a group have come; None where other processes are among them.

    Raises:
        DistStoreError: some did not come in time.
    """
    until = time.monotonic() + timeout.total_seconds()
    try:
        wait_until(lambda: attendance.all_here() or time.monotonic() > until, text)
        if attendance.outsiders:
            return None
        if missing := attendance.missing():
            raise dist.DistStoreError(
                f"{text} was given up after {seconds_in_words(timeout)}: {ranks_in_words(missing)} of the group "
                f"did not come"
            )
    except BaseException:
        attendance.leave()
        raise
    return attendance.result()


# --- making -----------------------------------------------------------------------------------------------------------

_PlainGroup = dist.ProcessGroup
_make_group = distributed_c10d._new_process_group_helper
_times_made: Counter[str] = Counter()  # since there has been a default group: a name may come again


def _make_group_together(
    size: int,
    group_rank: int | None,
    ranks: Sequence[int],
    backend: str,
    store: dist.Store,
    name: Any,
    **more: Any,
) -> tuple:
    """Make a group of some ranks, or of all where there are none, once all of them ask for it."""

    def make() -> tuple:
        return _make_group(size, group_rank, ranks, backend, store, name, **more)

    if not TracedGroup.recording or group_rank is None or not _is_traced(backend):
        return make()
    timeout = more.get("timeout") or distributed_c10d._get_default_timeout(distributed_c10d.Backend(backend))
    if not ranks:
        recorder.ledger.forget(TracedGroup.forget_names())
        _times_made.clear()
    meeting = None
    if is_polled() and not (_has_children() and "nccl" in str(backend)):
        meeting = _meet_for(size, group_rank, ranks, store, name, timeout)
    before = open_sockets()
    distributed_c10d.ProcessGroup = TracedGroup  # type: ignore[misc]
    try:
        made = make()
    finally:
        distributed_c10d.ProcessGroup = _PlainGroup  # type: ignore[misc]
    if isinstance(made[0], TracedGroup):
        token, members, complete, leave = meeting or _alone(size)
        made[0].known, awaited = complete, complete and timeout > SHORT_TIMEOUT
        made[0].introduce(f"{backend} {token}", members, open_sockets() - before, leave, awaited=awaited)
    return made


def _meet_for(
    size: int, group_rank: int, ranks: Sequence[int], store: dist.Store, name: str, timeout: timedelta
) -> Meeting | None:
    label = f"{name} of {list(ranks)}"
    _times_made[label] += 1
    attendance = _Attendance(
        store, f"{label} {_times_made[label]}", group_rank, size, lambda rank: f"{name}//cpu//0/{rank}"
    )
    if not ranks:
        return _meet(attendance, "init_process_group", timeout)
    world = dist.group.WORLD
    need = None
    if isinstance(world, TracedGroup) and world.awaited and timeout > SHORT_TIMEOUT:
        label = f"new_group {label} in {world.ledger_name}"
        need = recorder.ledger.add_collective(label, [world.members[rank] for rank in ranks], Agreement("new_group"))
    with _remove_if_failed(need), inside_call("new_group", need):
        try:
            return _meet(attendance, "new_group", timeout)
        except BaseException:
            if isinstance(world, TracedGroup):
                world.broken = True  # torch has counted this group on some ranks, and on others it has not
            raise


def _is_traced(backend: str) -> bool:
    return (
        set(distributed_c10d.BackendConfig(distributed_c10d.Backend(backend)).get_device_backend_map().values())
        <= _TRACED
    )


def _has_children() -> bool:
    """Whether this rank has started processes, which may take part in what it does."""
    return bool(psutil.Process().children())


# --- init_process_group, init_rpc and destroy_process_group ---------------------------------------------------------


plain_init = dist.init_process_group
"""Torch's own, for the course's group."""
_plain_destroy = dist.destroy_process_group
_DESTRUCTOR_SECONDS = 2.0


@functools.wraps(plain_init)
def _init_process_group(*args: Any, **kwargs: Any) -> None:
    """As torch's. The course's group makes room, and a call that fails leaves nothing behind."""
    _make_room()
    count = distributed_c10d._world.group_count
    given = inspect.signature(plain_init).bind_partial(*args, **kwargs).arguments
    try:
        with _as_call("init_process_group", given):
            plain_init(*args, **kwargs)
    finally:
        if not dist.is_initialized():
            distributed_c10d._world.group_count = count  # or this rank would look for the next group by another name


_plain_init_rpc = rpc.init_rpc


@functools.wraps(_plain_init_rpc)
def _init_rpc(*args: Any, **kwargs: Any) -> None:
    """As torch's; a call that fails leaves nothing behind."""
    count = rpc._init_counter
    given = inspect.signature(_plain_init_rpc).bind_partial(*args, **kwargs).arguments
    options = given.get("rpc_backend_options")
    try:
        with _as_call("init_rpc", {"init_method": getattr(options, "init_method", None), **given}):
            _plain_init_rpc(*args, **kwargs)
    except BaseException:
        rpc._init_counter = count
        raise


_plain_rpc_group = rpc.backend_registry._init_process_group


def _make_rpc_group(store: dist.Store, rank: int, world_size: int) -> Any:
    """As torch's, which makes a group over gloo for the agents of RPC alone, once all processes ask for it."""
    if is_polled() and world_size > 0:
        attendance = _Attendance(store, "rpc", rank, world_size, lambda other: f"0/{other}")
        _meet(attendance, "init_rpc", rpc.constants.DEFAULT_PROCESS_GROUP_TIMEOUT)
    return _plain_rpc_group(store, rank, world_size)


_plain_rpc_sync = rpc.rpc_sync


@functools.wraps(_plain_rpc_sync)
def _rpc_sync(to: Any, func: Callable, *args: Any, **kwargs: Any) -> Any:
    """As torch's, whose wait for the answer no signal can end."""
    if not is_polled():
        return _plain_rpc_sync(to, func, *args, **kwargs)
    answer = rpc.rpc_async(to, func, *args, **kwargs)
    wait_until(answer.done, f"rpc_sync({getattr(to, 'name', to)!r}, {getattr(func, '__name__', func)})")
    return answer.wait()


def _make_room() -> None:
    """Let a learner make the default group, where the course has made the one that there is.

    Raises:
        ValueError: there is a group already, in the learner's use.
    """
    if not dist.is_initialized():
        return
    if not course_group.is_default():
        raise ValueError(
            "trying to initialize the default process group twice: the first one was made before, maybe in an earlier "
            "cell, and is still open. dist.destroy_process_group() closes it"
        )
    if course_group.serving:
        raise ValueError(
            "trying to initialize the default process group twice: `backend=` has made it for this call already. Leave "
            "out init_process_group here, or leave out backend= where the code should make a group of its own"
        )
    close_groups()


@contextlib.contextmanager
def _as_call(call: str, given: dict[str, Any]) -> Iterator[None]:
    """Inside, ranks come together in a call. Where all of the run must come, the graph of waits can say who has not.

    Args:
        call: the name of the function.
        given: its arguments.
    """
    size, port = _asked_size(given), _asked_port(given)
    text = call if size in (None, recorder.ledger.run_size) else f"{call}(world_size={size})"
    timeout = given.get("timeout")
    if (
        size != recorder.ledger.run_size
        or (isinstance(timeout, timedelta) and timeout <= SHORT_TIMEOUT)
        or not is_polled()
        or _has_children()
    ):
        with inside_call(text):
            yield
        return
    agreement = Agreement(f"{call}{f' at port {port}' if port else ''}")
    need: Collective = recorder.ledger.add_collective(call, list(range(size)), agreement)
    with _remove_if_failed(need), inside_call(text, need):
        yield


@contextlib.contextmanager
def _remove_if_failed(need: Collective | None) -> Iterator[None]:
    try:
        yield
    except StopAsked:
        raise
    except BaseException:
        if need:
            recorder.ledger.remove_collective(need)
        raise


def _asked_size(given: dict[str, Any]) -> int | None:
    """How many processes a call of torch.distributed waits for; None where that is not known."""
    size = given.get("world_size")
    if isinstance(size, int) and size > 0:
        return size
    query = parse_qs(urlparse(given.get("init_method") or "").query)
    with contextlib.suppress(KeyError, ValueError):
        return int(query["world_size"][0] if "world_size" in query else os.environ["WORLD_SIZE"])
    return None


def _asked_port(given: dict[str, Any]) -> str:
    """The port at which they meet; "" where that is not known."""
    url = urlparse(given.get("init_method") or "env://")
    if url.scheme == "env" and given.get("store") is None:
        return os.environ.get("MASTER_PORT", "")
    return url.netloc.rpartition(":")[2] if url.scheme == "tcp" else ""


@functools.wraps(_plain_destroy)
def _destroy_process_group(group: dist.ProcessGroup | None = None) -> None:
    """As torch's, but it waits for no work that will never finish.

    While ranks are asked to stop, groups stay until the next call: those that still wait in one are to report that,
    and not that a connection was cut.
    """
    if group is None and not dist.is_initialized():
        return  # the course may have closed it, after an operation that was not finished
    some = [group] if group not in (None, dist.group.WORLD) else list(distributed_c10d._world.pg_map)
    traced_groups = [group for group in some if isinstance(group, TracedGroup)]
    if recorder.activity and recorder.activity.asked_to_stop:
        for traced in traced_groups:
            traced.broken = traced.dismissed = True
        return
    unfinished = [group for group in traced_groups if not group.is_clean]
    _leave(traced_groups, unfinished)
    traced_groups.clear()
    some.clear()
    _plain_destroy(group)
    if unfinished:
        destructors = threading.Thread(target=unfinished.clear, daemon=True, name=f"{OWN_THREADS}destructors")
        destructors.start()
        destructors.join(_DESTRUCTOR_SECONDS)


def _leave(groups: Sequence[TracedGroup], unfinished: Sequence[TracedGroup]) -> None:
    """A function of its own, whose variables do not keep the last group alive."""
    for group in groups:
        group.leave()
    for group in unfinished:
        group.disconnect()


def close_groups() -> None:
    """Destroy the default group of this rank, and all others with it; afterwards there is none, whatever torch says.

    A rank that leaves at once breaks the connections of those that still work, and they report that instead of what
    went wrong. So this is for the beginning of a call.
    """
    course_group.group = None
    world = distributed_c10d._world
    try:
        _destroy_process_group()
    except Exception:
        distributed_c10d._update_default_pg(None)
        for by_group in (world.pg_map, world.pg_names, world.pg_group_ranks, world.pg_backend_config):
            by_group.clear()
        world.tags_to_pg.clear()
        world.pg_to_tag.clear()
        distributed_c10d._unregister_all_process_groups()
    world.group_count = 0  # also where an attempt has failed: by this count ranks name the next group


def default_group_is_broken() -> bool:
    """Whether an operation of the default group, or of one of its parts, was left before it was done."""
    return dist.is_initialized() and any(
        isinstance(group, TracedGroup) and group.broken for group in distributed_c10d._world.pg_map
    )


def close_broken_groups(says_so: bool) -> None:
    """Close the groups of this rank, of which one is broken on some rank; a learner's own are missed.

    Args:
        says_so: whether this rank prints that, for all.
    """
    group = dist.group.WORLD
    if says_so and isinstance(group, TracedGroup) and not (course_group.is_default() or group.dismissed):
        print(
            "The process group of an earlier cell or run was closed on all ranks, because an operation in it was not "
            "finished. Call init_process_group again."
        )
    close_groups()


def record_calls() -> None:
    """Groups that are made from now on record their calls, and waits for stores are polled."""
    poll_stores()
    ours: dict[str, Callable] = {
        "_new_process_group_helper": _make_group_together,
        "init_process_group": _init_process_group,
        "destroy_process_group": _destroy_process_group,
    }
    for name, function in ours.items():
        setattr(distributed_c10d, name, function)
        if hasattr(dist, name):
            setattr(dist, name, function)
    rpc.init_rpc, rpc.rpc_sync, rpc.api.rpc_sync = _init_rpc, _rpc_sync, _rpc_sync
    rpc.backend_registry._init_process_group = _make_rpc_group
    os.register_at_fork(after_in_child=TracedGroup.stop_recording)

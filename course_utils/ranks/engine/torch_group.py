"""A group of torch.distributed for one call, whose ranks meet through a file in the ranks' own folder.

torch's TCPStore has no password; a file in a folder of mode 0700 needs none. Only where the folder's disk does not lock
files for all ranks, as some network file systems, they meet at a TCPStore after all, which listens on one address.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401 - first imported inside a group, it can hang the next one
from torch.distributed import distributed_c10d

from course_utils.gpu_seats import assign_gpus, own_seat
from course_utils.tcp_store import own_address, tcp_store
from course_utils.trace.recorder import recorder
from course_utils.trace.torch_distributed import record_calls

if TYPE_CHECKING:
    from mpi4py import MPI

TIMEOUT = timedelta(seconds=60)
_abandoned: list = []  # groups with work that never finished: their destructors would wait for it
_left_clean = True  # had the last call's operations all finished?
_BACKENDS = {"gloo": "gloo", "nccl": "cpu:gloo,cuda:nccl"}


class GroupKey(NamedTuple):
    """What a group was made for: its number of ranks, the communicator beside it, and "gloo" or "nccl"."""

    world_size: int
    communicator: int
    backend: str


_last_group_key: GroupKey | None = None


def can_reuse_group(wanted: GroupKey) -> bool:
    """Whether the group of an earlier call may serve again: nothing can be on its way in it, and nothing was changed.

    All ranks of the call must say so, for a group is made by all of them together.
    """
    return (
        _last_group_key == wanted
        and _left_clean
        and dist.is_initialized()
        and list(distributed_c10d._world.pg_map) == [dist.group.WORLD]
    )


def _destroy_last_group() -> None:
    """Destroy the group of the last call, now that all its ranks are done with it.

    A rank that left at once would break the connections of those that still work, and they would report that
    instead of what went wrong.
    """
    if not dist.is_initialized():
        return
    if not _left_clean:
        _abandoned.append((list(distributed_c10d._world.pg_map), dist.group.WORLD))
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


_lock: dict[int, bool] = {}  # number of ranks → whether the disk of their files locks them


def store_for(inner: "MPI.Intracomm", rendezvous: str) -> dist.Store:
    """Where the ranks of a communicator meet: through a file that does not exist yet, or at rank 0's address.

    All of them must ask.
    """
    if inner.size not in _lock:
        _lock[inner.size] = locks_hold(inner, Path(rendezvous).with_name("locks"))
    if _lock[inner.size]:
        return dist.FileStore(rendezvous, inner.size)
    if inner.rank == 0:
        host = own_address()
        store = tcp_store(host, 0, inner.size, TIMEOUT, serve=True)
        inner.bcast((host, store.port))
        return store
    host, port = inner.bcast(None)
    return tcp_store(host, port, inner.size, TIMEOUT, serve=False)


def locks_hold(inner: "MPI.Intracomm", file: Path) -> bool:
    """Whether a lock that rank 0 takes keeps all other ranks out: some disks have no locks, some only on each node."""
    with file.open("a") as own:
        first = _try_lock(own) if inner.rank == 0 else None
        inner.barrier()
        well = first if inner.rank == 0 else _try_lock(own) is False
        return all(inner.allgather(well))


def _try_lock(file: IO) -> bool | None:
    """Whether a lock could be had; None where there are none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def take_own_gpu(inner: "MPI.Intracomm") -> None:
    """Make the GPU that falls to this rank torch's own one in this process.

    Raises:
        CourseError: there is not a GPU for each rank; all ranks raise it.
    """
    placement = assign_gpus(inner.allgather(own_seat()))
    placement.require_nccl()
    torch.cuda.set_device(placement.numbers[inner.rank])


@contextlib.contextmanager
def torch_group(inner: "MPI.Intracomm", rendezvous: str, wanted: GroupKey, *, reuse: bool) -> Iterator[None]:
    """`torch.distributed` inside, with its default group. The group stays until a call needs another one.

    Args:
        inner: a plain communicator of these ranks.
        rendezvous: a file that does not exist yet.
        wanted: how many ranks, and with which backend.
        reuse: take the group of the last call, which fits on all ranks.
    """
    global _left_clean, _last_group_key
    record_calls()
    if not reuse:
        _destroy_last_group()
        _last_group_key = None
        store = store_for(inner, rendezvous)
        dist.init_process_group(
            _BACKENDS[wanted.backend], store=store, rank=inner.rank, world_size=wanted.world_size, timeout=TIMEOUT
        )
        _last_group_key = wanted
    try:
        yield
    finally:
        _left_clean = not recorder.open

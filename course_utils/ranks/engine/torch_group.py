"""A group of torch.distributed for one call, whose ranks meet through a file in the ranks' own folder.

torch's TCPStore has no password; a file in a folder of mode 0700 needs none. Only where the folder's disk does not lock
files for all ranks, as some network file systems, they meet at a TCPStore after all, which listens on one address.
"""

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401 - first imported inside a group, it can hang the next one
from torch.distributed import distributed_c10d
from torch.distributed.constants import default_pg_timeout

from course_utils.gpu_seats import assign_gpus, own_seat
from course_utils.ranks.engine.rank_process import this_rank
from course_utils.tcp_store import own_address, tcp_store
from course_utils.trace.recorder import NO_LINE, recorder
from course_utils.trace.torch.process_groups import close_groups, course_group, plain_init
from course_utils.trace.torch.torch_distributed import TracedGroup
from course_utils.trace.torch.torch_stores import inside_call
from course_utils.words import capital, ranks_in_words

if TYPE_CHECKING:
    from mpi4py import MPI

_BACKENDS = {"gloo": "gloo", "nccl": "cpu:gloo,cuda:nccl"}


class GroupsBroken(RuntimeError):
    """No group can be made on this rank, by the fault of something that ran before."""


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
    group = course_group.group
    return (
        _last_group_key == wanted
        and course_group.is_default()
        and isinstance(group, TracedGroup)
        and group.is_clean
        and list(distributed_c10d._world.pg_map) == [group]
    )


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
        store = tcp_store(host, 0, inner.size, default_pg_timeout, serve=True)
        inner.bcast((host, store.port))
        return store
    host, port = inner.bcast(None)
    return tcp_store(host, port, inner.size, default_pg_timeout, serve=False)


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
    own = this_rank()
    own.folder.nccl_file(own.world.rank).touch()
    torch.cuda.set_device(placement.numbers[inner.rank])


def torch_settings() -> dict[str, str]:
    """What this process has set in torch that changes what the ranks of a group compute together."""
    return {
        "torch's default dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "torch's default device": str(torch.get_default_device()),
        "the debug level of torch.distributed": dist.get_debug_level().name,
    }


def different_settings(rank: int, of_ranks: Sequence[dict[str, str]]) -> Iterator[str]:
    """A sentence for each setting in which a rank differs from most ranks, or from rank 0 where none is most common.

    Args:
        rank: the rank.
        of_ranks: the settings of all ranks.
    """
    for name, own in of_ranks[rank].items():
        values = [settings[name] for settings in of_ranks]
        usual = max(values, key=values.count)
        if own != usual:
            others = [other for other, value in enumerate(values) if value == usual]
            yield f"{capital(name)} is {own} on this rank, and {usual} on {ranks_in_words(others)}."


def print_different_settings(inner: "MPI.Intracomm") -> None:
    """Say on each rank in what it differs from the others; all ranks must ask."""
    for sentence in different_settings(inner.rank, inner.allgather(torch_settings())):
        print(sentence)


@contextlib.contextmanager
def torch_group(inner: "MPI.Intracomm", rendezvous: str, wanted: GroupKey, *, reuse: bool) -> Iterator[None]:
    """`torch.distributed` inside, with its default group. The group stays until a call needs another one.

    Args:
        inner: a plain communicator of these ranks.
        rendezvous: a file that does not exist yet.
        wanted: how many ranks, and with which backend.
        reuse: take the group of the last call, which fits on all ranks.

    Raises:
        GroupsBroken: a group cannot be made any more.
    """
    global _last_group_key
    if reuse and isinstance(course_group.group, TracedGroup):
        recorder.ledger.forget([course_group.group.ledger_name])  # so that its collectives are counted from 1
    else:
        try:
            _make_group(inner, rendezvous, wanted)
        except Exception as error:
            raise GroupsBroken(
                f"torch.distributed can make no process group on this rank any more ({type(error).__name__}: {error}). "
                "`ranks.restart()` starts new ranks, without the variables of the old ones"
            ) from error
        _last_group_key = wanted
    course_group.serving = True
    try:
        yield
    finally:
        course_group.serving = False


def _make_group(inner: "MPI.Intracomm", rendezvous: str, wanted: GroupKey) -> None:
    """Make the default group of these ranks, whatever groups there are on each."""
    close_groups()
    store = store_for(inner, rendezvous)
    with inside_call("a fresh process group", source_line=NO_LINE):
        plain_init(_BACKENDS[wanted.backend], store=store, rank=inner.rank, world_size=wanted.world_size)
    course_group.group = dist.group.WORLD

"""A group of torch.distributed for one call, whose ranks meet through a file in the ranks' own folder.

torch's TCPStore listens on every interface without a password; a file in a folder of mode 0700 does not.
"""

import contextlib
from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401 - first imported inside a group, it can hang the next one
from torch.distributed import distributed_c10d

from course_utils.trace.recorder import recorder
from course_utils.trace.torch_distributed import record_calls

TIMEOUT = timedelta(seconds=60)
_abandoned: list = []  # groups with work that never finished: their destructors would wait for it
_left_clean = True  # had the last call's operations all finished?
_made_for: tuple[int, int] | None = None  # how many ranks the group has, and beside which communicator it was made


def fits(world_size: int, communicator: int) -> bool:
    """Whether the group of an earlier call may serve again: nothing can be on its way in it, and nothing was changed.

    All ranks of the call must say so, for a group is made by all of them together.
    """
    return (
        _made_for == (world_size, communicator)
        and _left_clean
        and dist.is_initialized()
        and list(distributed_c10d._world.pg_map) == [dist.group.WORLD]
    )


def _leave_the_last_group() -> None:
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


def _store(meeting: str, rank: int, world_size: int) -> dist.Store:
    if not meeting.startswith("tcp://"):
        return dist.FileStore(meeting, world_size)
    host, _, port = meeting.removeprefix("tcp://").partition(":")
    return dist.TCPStore(host, int(port), world_size, is_master=rank == 0, timeout=TIMEOUT)


@contextlib.contextmanager
def torch_group(meeting: str, rank: int, world_size: int, communicator: int, *, again: bool) -> Iterator[None]:
    """`torch.distributed` inside, with gloo as its default group. The group stays until a call needs another one.

    Args:
        meeting: a file that does not exist yet; or, where the ranks share no files, an address of rank 0's,
            "tcp://10.77.0.1:20000".
        communicator: the number of the communicator beside which the group is made; see `fits`.
        again: take the group of the last call, which fits on all ranks.
    """
    global _left_clean, _made_for
    record_calls()
    if not again:
        _leave_the_last_group()
        _made_for = None
        store = _store(meeting, rank, world_size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)
        _made_for = world_size, communicator
    try:
        yield
    finally:
        _left_clean = not recorder.open

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


@contextlib.contextmanager
def torch_group(meeting: str, rank: int, world_size: int) -> Iterator[None]:
    """`torch.distributed` inside, with gloo as its default group. The group stays until the next call."""
    global _left_clean
    record_calls()
    _leave_the_last_group()
    store = dist.FileStore(meeting, world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)
    try:
        yield
    finally:
        _left_clean = not recorder.open

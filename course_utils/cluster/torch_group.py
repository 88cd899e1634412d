"""A group of torch.distributed for one call, whose ranks meet through a file in the ranks' own folder.

torch's TCPStore listens on every interface without a password; a file in a folder of mode 0700 does not.
"""

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist
from torch.distributed import distributed_c10d

from course_utils.trace.recorder import recorder
from course_utils.trace.torch_distributed import record_calls

TIMEOUT = timedelta(seconds=60)
_abandoned: list = []  # groups with work that never finished: their destructors would wait for it


@contextlib.contextmanager
def torch_group(meeting: str, rank: int, world_size: int) -> Iterator[None]:
    """`torch.distributed` with gloo as its default group inside; after a clean run the group is destroyed."""
    record_calls()
    store = dist.FileStore(meeting, world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)
    recorder.began = time.perf_counter()
    clean = False
    try:
        yield
        clean = recorder.open_requests == 0
    finally:
        if not clean:
            _abandoned.append((list(distributed_c10d._world.pg_map), dist.group.WORLD, store))
        with contextlib.suppress(Exception):
            dist.destroy_process_group()

"""torch on virtual ranks: for each a thread, a default group, and random numbers of its own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.testing._internal.distributed.multi_threaded_pg import ThreadLocalWorld

from course_utils.ranks.virtual.rank_threads import MainThread, RankThread, rank_threads
from course_utils.ranks.virtual.virtual_group import BACKEND, VirtualGroup
from course_utils.ranks.virtual.virtual_time import Scheduler, VirtualRank


class TorchThread(RankThread):
    """A rank's thread, which keeps torch's random numbers to itself: all threads have one generator."""

    def stand_still(self) -> None:
        """As `RankThread.stand_still`."""
        state = torch.get_rng_state()
        try:
            super().stand_still()
        finally:
            torch.set_rng_state(state)


@contextlib.contextmanager
def torch_threads() -> Iterator[tuple[Callable, MainThread]]:
    """Inside, each thread has groups of its own, and computes on one core, as a rank does; what makes the threads."""
    world, cores, state = distributed_c10d._world, torch.get_num_threads(), torch.get_rng_state()
    inside: Any = torch._C._distributed_c10d  # torch's own tests do this; its stubs know nothing of it
    vars(distributed_c10d)["_world"] = ThreadLocalWorld()
    inside._set_thread_isolation_mode(True)
    torch.set_num_threads(1)
    try:
        with rank_threads(TorchThread) as threads:
            yield threads
    finally:
        torch.set_num_threads(cores)
        inside._set_thread_isolation_mode(False)
        vars(distributed_c10d)["_world"] = world
        torch.set_rng_state(state)


@contextlib.contextmanager
def default_group(scheduler: Scheduler, me: VirtualRank, world_size: int) -> Iterator[None]:
    """Inside, `torch.distributed` has a default group on this thread."""
    torch.set_num_threads(1)
    torch.set_rng_state(torch.Generator().get_state())
    group = VirtualGroup(scheduler, me, list(range(world_size)), "0", "default_pg")
    config, ranks = (
        str(distributed_c10d.BackendConfig(dist.Backend(BACKEND))),
        {rank: rank for rank in range(world_size)},
    )
    name: Any = "0"
    distributed_c10d._register_pg_in_world(
        group, BACKEND, dist.HashStore(), name, config, ranks, add_to_default_tag=True
    )
    distributed_c10d._update_default_pg(group)
    distributed_c10d._world.group_count = 1
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            dist.destroy_process_group()

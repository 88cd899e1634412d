"""NCCL's own record of what each rank has called, torch's flight recorder: what it says of a rank that stays behind."""

import os
import pickle
import time
from pathlib import Path

import torch
import torch.distributed as dist

from gpu.on_ranks import on_ranks
from gpu.registry import Needs, Where, check, equal, needs_gpu


def one_rank_behind(device: torch.device) -> bytes:
    """On each rank: the record while the last rank has not come to the third of three all-reduces."""
    x, late = torch.ones(1000, device=device), dist.get_rank() == dist.get_world_size() - 1
    for _ in range(2):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    work = None if late else dist.all_reduce(x, async_op=True)
    time.sleep(2)
    record = torch._C._distributed_c10d._dump_nccl_trace()
    if late:
        time.sleep(2)
        work = dist.all_reduce(x, async_op=True)
    work.wait()
    torch.cuda.synchronize()
    return bytes(record)


@check(13, shows="torch's flight recorder knows, while a rank is behind, who came to which collective")
def flight_recorder(where: Where):
    needs_gpu(where)
    if where.world_sizes[-1] < 2:
        raise Needs("two ranks with NCCL")
    os.environ["TORCH_FR_BUFFER_SIZE"] = os.environ["TORCH_NCCL_TRACE_BUFFER_SIZE"] = "2000"
    records = on_ranks(where, where.world_sizes[-1], one_rank_behind)
    for rank, record in enumerate(records):
        if where.out:
            (Path(where.out) / f"flight-{rank}.pickle").write_bytes(record)
    calls = [len(pickle.loads(record).get("entries", [])) for record in records]
    yield equal("calls that the first rank has and the last one has not", calls[0] - calls[-1], target=1)

"""Ranks for a check: processes of torch.multiprocessing, each with a GPU of its own, that meet through a file."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

from gpu.registry import Needs, Where
from gpu.running import prepare


def on_ranks(where: Where, world_size: int, work: Callable, *arguments: Any) -> list:
    """`work(device, *arguments)` on this many ranks of a default group; what each returned, rank 0's first.

    Args:
        work: a function of a module; new processes find it by its name.

    Raises:
        Needs: a package that a rank did not find.
    """
    with tempfile.TemporaryDirectory(prefix="gpu-ranks-") as folder:
        try:
            torch.multiprocessing.start_processes(
                _rank, (where, world_size, folder, work, arguments), nprocs=world_size, start_method=where.start
            )
        except torch.multiprocessing.ProcessRaisedException as error:
            if found := re.search(
                r"^ModuleNotFoundError: No module named '(?!course_utils|gpu)([\w.]+)'", str(error), re.M
            ):
                raise Needs(found[1]) from None
            raise
        return [torch.load(Path(folder, f"{rank}.pt"), weights_only=False) for rank in range(world_size)]


def share_a_gpu(rank: int) -> dict[str, str]:
    """The variables with which NCCL takes ranks on one GPU for nodes, joined by sockets over loopback.

    It rejects two ranks of one node on one GPU, which it tells by the name of the node and the number of the GPU.
    Source: NCCL, "Environment variables"; its src/init.cc, "Duplicate GPU detected".
    """
    apart = {"NCCL_HOSTID": f"rank-{rank}", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MAX_CTAS": "2"}
    off = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
    return apart | dict.fromkeys(off, "1") | {"NCCL_NVLS_ENABLE": "0"}


def _rank(rank: int, where: Where, world_size: int, folder: str, work: Callable, arguments: tuple) -> None:
    prepare(where)
    if where.cuda and where.shared:
        os.environ.update(share_a_gpu(rank))
    device = torch.device("cuda", rank % where.gpus) if where.cuda else torch.device("cpu")
    if where.cuda:
        torch.cuda.set_device(device)
    store = dist.FileStore(f"{folder}/meeting", world_size)
    known = {"device_id": device} if where.cuda else {}
    dist.init_process_group(where.backend, store=store, rank=rank, world_size=world_size, **known)
    result = work(device, *arguments)
    torch.save(result, Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()

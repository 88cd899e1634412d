"""The program whose failing launches are recorded: every start says who runs where, with what; then one task.

    torchrun --nproc-per-node=2 train.py steps          (or: collectives, memory, software, checkpoint FOLDER)
    torchrun --nproc-per-node=2 train.py gpu_steps      (or: gpu_memory, gpu_labels, gpu_skip; over NCCL)

It is written to fail when it is launched wrongly; `course_utils.lessons.gpu_nodes.train_ddp` is the one to train with.
"""

import os
import platform
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy
import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=20)


def steps(count: str = "3", pause: str = "0") -> None:
    """Average a gradient `count` times; a step lasts `pause` seconds more."""
    gradient = torch.ones(1000)
    for step in range(int(count)):
        dist.all_reduce(gradient)
        time.sleep(float(pause))
        if dist.get_rank() == 0:
            print(f"step {step}", flush=True)


def collectives() -> None:
    """Rank 0 averages a gradient while the others wait for weights."""
    values = torch.ones(1000)
    if dist.get_rank() == 0:
        dist.all_reduce(values)
    else:
        dist.broadcast(values, src=0)


def memory(mebibytes: str) -> None:
    """The last rank keeps the activations of step after step."""
    kept = []
    for step in range(8):
        if dist.get_rank() == dist.get_world_size() - 1:
            kept.append(torch.ones(int(mebibytes), 1 << 18))
        dist.all_reduce(torch.ones(10))
        if dist.get_rank() == 0:
            print(f"step {step}", flush=True)


def software() -> None:
    """Rank 0 sends the others the mean and spread of its data."""
    statistics = [{"mean": numpy.zeros(3), "spread": numpy.ones(3)}] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(statistics, src=0)


def checkpoint(folder: str) -> None:
    """Rank 0 writes a checkpoint, all read it."""
    file = Path(folder) / "checkpoint.pt"
    if dist.get_rank() == 0:
        torch.save({"step": 100}, file)
        print(f"rank 0 wrote {file}", flush=True)
    dist.barrier()
    print(f"rank {dist.get_rank()} goes on after step {torch.load(file)['step']}", flush=True)


def gpu_steps(chosen: str = "local") -> None:
    """Average gradients on GPUs: each rank on its own (`local`), or all on the first, which NCCL rejects (`first`)."""
    if chosen == "local":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    gradient = torch.ones(1000, device="cuda")
    for step in range(3):
        dist.all_reduce(gradient)
        if dist.get_rank() == 0:
            print(f"step {step}", flush=True)
    torch.cuda.synchronize()


def gpu_memory() -> None:
    """Activations that do not fit into a GPU."""
    kept = []
    for step in range(1000):
        kept.append(torch.ones(1 << 30, device="cuda"))
        print(f"step {step}", flush=True)


def gpu_labels() -> None:
    """A label that is not a class: eleven, numbered from 1, where the network has ten."""
    scores = torch.randn(11, 10, device="cuda")
    loss = torch.nn.functional.cross_entropy(scores, torch.arange(1, 12, device="cuda"))
    print(f"loss {loss.item():.3f}", flush=True)


def gpu_skip() -> None:
    """The last rank has a batch less, and leaves out the last all-reduce."""
    gradient = torch.ones(1000, device="cuda")
    for step in range(4):
        if step < 3 or dist.get_rank() < dist.get_world_size() - 1:
            dist.all_reduce(gradient)
            torch.cuda.synchronize()
            print(f"rank {dist.get_rank()}, step {step}", flush=True)
    time.sleep(60)


def share_a_gpu() -> None:
    """Let ranks share a GPU: NCCL takes them for nodes, joined by sockets. Not for trainings, which it slows down."""
    environment = {"NCCL_HOSTID": f"rank-{os.environ['RANK']}", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}
    os.environ.update(environment | {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1"})


def main(task: str, *arguments: str) -> None:
    """Meet the other ranks, and do the task."""
    if os.environ.get("SHARE_A_GPU"):
        share_a_gpu()
    dist.init_process_group("nccl" if task.startswith("gpu") else "gloo", timeout=TIMEOUT)
    software = f"Python {platform.python_version()}, torch {torch.__version__}, numpy {numpy.__version__}"
    node = os.environ.get("SLURMD_NODENAME") or platform.node()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} on {node}: {software}", flush=True)
    TASKS[task](*arguments)
    dist.destroy_process_group()


ON_PROCESSORS = (steps, collectives, memory, software, checkpoint)
ON_GPUS = (gpu_steps, gpu_memory, gpu_labels, gpu_skip)
TASKS = {task.__name__: task for task in ON_PROCESSORS + ON_GPUS}

if __name__ == "__main__":
    main(*sys.argv[1:])

"""Collectives over NCCL, and what MPI does with an array on a GPU."""

import tempfile

import torch
import torch.distributed as dist

from gpu.on_ranks import on_ranks
from gpu.registry import Needs, Where, check, equal
from gpu.replicas import beside_serial
from gpu.timing import again
from workshop.bench.rows import Row, value_row


def all_collectives(device: torch.device) -> dict[str, float]:
    """On each rank: how far the result of each collective is from what it should be."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(4.0, device=device) + rank
    total = sum(torch.arange(4.0, device=device) + one for one in range(ranks))
    wrong = {}

    def note(name: str, result: torch.Tensor, expected: torch.Tensor) -> None:
        wrong[name] = (result - expected).abs().max().item()

    summed = mine.clone()
    dist.all_reduce(summed)
    note("all_reduce", summed, total)
    sent = mine.clone()
    dist.broadcast(sent, src=0)
    note("broadcast", sent, torch.arange(4.0, device=device))
    parts = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(parts, mine)
    note("all_gather", torch.stack(parts).sum(dim=0), total)
    part = torch.empty(4, device=device)
    dist.reduce_scatter(part, [mine.clone() for _ in range(ranks)])
    note("reduce_scatter", part, total)
    swapped = torch.empty(ranks, device=device)
    dist.all_to_all_single(swapped, torch.full((ranks,), float(rank), device=device))
    note("all_to_all", swapped, torch.arange(float(ranks), device=device))
    dist.barrier()
    return wrong


@check(5, 13, shows="every collective that the course uses gives the right numbers, with one rank too")
def collectives(where: Where):
    for ranks in where.world_sizes:
        results = on_ranks(where, ranks, all_collectives)
        for name in results[0]:
            yield equal(f"{name}, P = {ranks}, error", max(one[name] for one in results), target=0)


def timed_allreduce(device: torch.device, where: Where, sizes: list[int], runs: int) -> dict[int, list[float]]:
    """On each rank: seconds of an all-reduce of this many bytes, again and again."""
    taken = {}
    for nbytes in sizes:
        x = torch.zeros(nbytes // 4, device=device)
        dist.barrier()
        taken[nbytes] = again(where, lambda x=x: dist.all_reduce(x), runs, calls=where.pick(5, 1))
    return taken


@check(5, 13, shows="the bus bandwidth of an all-reduce by size, as nccl-tests count it")
def bus_bandwidth(where: Where):
    from course_utils.lessons.allreduce.bandwidth import bus_bandwidth as rate_of_bus

    if where.cuda and where.world_sizes[-1] < 2:
        raise Needs("two GPUs")
    sizes = where.pick([1 << power for power in range(12, 31, 2)], [1 << 12, 1 << 16])
    ranks = where.world_sizes[-1]
    results = on_ranks(where, ranks, timed_allreduce, where, sizes, where.pick(9, 3))
    for nbytes in sizes:
        slowest = [max(each) for each in zip(*(one[nbytes] for one in results), strict=True)]
        rates = [rate_of_bus("all_reduce", ranks, nbytes, taken) / 1e9 for taken in slowest]
        yield value_row("gpu", f"P = {ranks}, {nbytes >> 10} KiB", rates, "GB/s", better="higher")


def recorded(where: Where, folder: str) -> None:
    """On each rank: in the place of the default group one whose calls the course records."""
    from course_utils.trace.torch.process_groups import record_calls

    rank, ranks = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    record_calls()
    dist.init_process_group(where.backend, store=dist.FileStore(folder, ranks), rank=rank, world_size=ranks)


def read_after_a_slow_kernel(device: torch.device, where: Where, folder: str) -> dict[str, float]:
    """On each rank, over recorded groups: how far off is what the next kernel reads, when the input was late."""
    recorded(where, folder)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    size, total = where.pick(1 << 24, 1 << 10), ranks * (ranks + 1) / 2
    slow = torch.ones(where.pick(8192, 64), where.pick(8192, 64), device=device)
    wrong = {}
    for name in ("all_reduce", "reduce_scatter", "send and recv"):
        busy = slow
        for _ in range(10):
            busy = busy @ slow / len(slow)
        x = torch.full((ranks * size,), float(rank + 1), device=device) * busy[0, 0]
        found, due = torch.empty(size, device=device), total
        if name == "all_reduce":
            dist.all_reduce(x, async_op=True).wait()
            found = x[:size]
        elif name == "reduce_scatter":
            dist.reduce_scatter(found, list(x.chunk(ranks)), async_op=True).wait()
        elif ranks == 1:
            continue
        else:
            after, before = (rank + 1) % ranks, (rank - 1) % ranks
            both = [dist.P2POp(dist.isend, x[:size], after), dist.P2POp(dist.irecv, found, before)]
            for work in dist.batch_isend_irecv(both):
                work.wait()
            due = before + 1
        wrong[name] = (found * 1).sub(due).abs().max().item()
    return wrong


@check(4, 6, shows="what the trace records is still in order: a kernel behind a wait reads the whole sum")
def recorded_order(where: Where):
    import numpy as np  # noqa: F401 - which the recorder needs

    for ranks in where.world_sizes:
        with tempfile.TemporaryDirectory() as folder:
            results = on_ranks(where, ranks, read_after_a_slow_kernel, where, f"{folder}/meeting")
        for name in results[0]:
            yield equal(f"{name}, P = {ranks}, error", max(one[name] for one in results), target=1e-4)


def recorded_replicas(device: torch.device, where: Where, folder: str) -> dict[str, float]:
    """On each rank, over recorded groups: how far its weights are from those of one process."""
    recorded(where, folder)
    return beside_serial(device)


@check(
    6, 7, 13, shows="recorded replicas train as one process: on a GPU backward runs in a thread without Python below it"
)
def recorded_backward(where: Where):
    import numpy as np  # noqa: F401 - which the recorder needs

    ranks = where.world_sizes[-1]
    with tempfile.TemporaryDirectory() as folder:
        results = on_ranks(where, ranks, recorded_replicas, where, f"{folder}/meeting")
    for name in results[0]:
        yield equal(f"{name}, P = {ranks}", max(one[name] for one in results))


@check(4, 13, shows="an MPI that cannot read a GPU's memory rejects the array in a line, and does not crash")
def mpi_and_gpus(where: Where):
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):  # the package is missing, or the library below it
        raise Needs("mpi4py and an MPI") from None
    from course_utils.errors import CourseError
    from course_utils.trace.mpi.memory import cuda_aware
    from course_utils.trace.mpi.traced_communicators import TracedComm

    if where.cuda and cuda_aware():
        raise Needs("an MPI that is not CUDA-aware; this one is")
    comm = TracedComm(MPI.COMM_SELF)
    x = torch.ones(4, device=where.pick("cuda", "meta"))
    calls = {
        "Send": lambda: comm.Send(x, dest=0),
        "Recv": lambda: comm.Recv(x, source=0),
        "Irecv": lambda: comm.Irecv(x, source=0),
        "Bcast": lambda: comm.Bcast(x),
        "Allreduce": lambda: comm.Allreduce(MPI.IN_PLACE, x),
    }
    for name, call in calls.items():
        try:
            call()
            rejected = 0.0
        except CourseError:
            rejected = 1.0
        yield Row("gpu", f"{name} is rejected", rejected, "", "higher", 1.0, 0.0, 1)

"""Which of how many processes this one is, and where they meet: every launcher says it in its own words."""

import contextlib
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.words import count, ranks

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

PORTS = range(20_000, 30_000)
"""Where rank 0 listens under srun, unless $MASTER_PORT says otherwise; the job's number chooses one of them."""
TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True)
class Launch:
    """What the launcher tells a process.

    Attributes:
        by: "torchrun", "srun", "ranks" (those of `course.start`) or "alone".
        rank: of this process among all.
        world_size: how many there are.
        local_rank: of this process among those of its node; it chooses the GPU.
        master: "host:port" where rank 0 waits for the others; "" where they have met already, or there are none.
        restarts: how often the same training was started again before, by torchrun or by Slurm's requeue.
    """

    by: str
    rank: int
    world_size: int
    local_rank: int
    master: str = ""
    restarts: int = 0


def find_launch(environment: Mapping[str, str] | None = None) -> Launch:
    """Find rank, world size and meeting point in the environment; nothing moves between ranks.

    torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. srun sets SLURM_PROCID,
    SLURM_STEP_NUM_TASKS and SLURM_LOCALID; the meeting point is the step's first node, and a port that follows from the
    job's number, unless MASTER_ADDR and MASTER_PORT say otherwise. Where torchrun runs under srun, torchrun counts.

    Args:
        environment: the process's own without.

    Raises:
        CourseError: several processes were started, and none can know of the others.

    Source: docs.pytorch.org, "torchrun", environment variables; Slurm's srun(1), output environment variables.
    """
    env = os.environ if environment is None else environment
    if "RANK" in env and "WORLD_SIZE" in env:
        master = f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
        restarts = int(env.get("TORCHELASTIC_RESTART_COUNT", 0)) + int(env.get("SLURM_RESTART_COUNT", 0))
        return Launch(
            "torchrun", int(env["RANK"]), int(env["WORLD_SIZE"]), int(env.get("LOCAL_RANK", 0)), master, restarts
        )
    if "SLURM_STEP_NUM_TASKS" in env:  # SLURM_PROCID alone is there without srun too, in the batch script
        host = env.get("MASTER_ADDR") or first_node(env.get("SLURM_STEP_NODELIST") or env["SLURM_JOB_NODELIST"])
        port = env.get("MASTER_PORT") or PORTS[int(env["SLURM_JOB_ID"]) % len(PORTS)]
        return Launch(
            "srun",
            int(env["SLURM_PROCID"]),
            int(env["SLURM_STEP_NUM_TASKS"]),
            int(env["SLURM_LOCALID"]),
            f"{host}:{port}",
            int(env.get("SLURM_RESTART_COUNT", 0)),
        )
    started = int(env.get("PMI_SIZE") or env.get("OMPI_COMM_WORLD_SIZE") or 1)
    if started > 1:
        raise CourseError(
            f"MPI started {started} processes, and each of them would train alone. "
            'Start the script with torchrun or srun, and on ranks use `ranks.run(train_ddp, settings, backend="gloo")`.'
        )
    return Launch("alone", 0, 1, 0)


def first_node(nodes: str) -> str:
    """The first name of Slurm's list of nodes: "gpu01" of "gpu[01-04,07],fat1".

    Raises:
        CourseError: this is no such list.
    """
    found = re.match(r"([\w.-]+)(?:\[(\d+)[\d,-]*\]([\w.-]*))?(?:,|$)", nodes)
    if not found:
        raise CourseError(f"{nodes!r} is no list of nodes. `scontrol show hostnames` takes one apart.")
    return "".join(part for part in found.groups() if part)


@dataclass(frozen=True)
class Seat:
    """Where a process sits; every process tells all others.

    Attributes:
        node: the name of its machine.
        gpu: the number that the GPU has for this process; None without one.
        gpu_id: the same GPU has the same one for all processes.
        gpu_name: such as "NVIDIA H100".
    """

    node: str
    gpu: int | None = None
    gpu_id: str = ""
    gpu_name: str = ""


def own_seat(local_rank: int) -> Seat:
    """This process's node, and the GPU that its local rank chooses among those that it sees."""
    import torch

    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if not torch.cuda.is_available():
        return Seat(node)
    gpu = local_rank % torch.cuda.device_count()  # srun may have given each task one GPU, which then has number 0
    facts = torch.cuda.get_device_properties(gpu)
    return Seat(node, gpu, str(getattr(facts, "uuid", f"{node}:{gpu}")), facts.name)


def backend_for(seats: Sequence[Seat]) -> str:
    """ "nccl" where every process has a GPU of its own, "gloo" where none has one.

    Raises:
        CourseError: some have one and some have none, or two share one, which NCCL refuses.
    """
    without = [rank for rank, seat in enumerate(seats) if seat.gpu is None]
    if len(without) == len(seats):
        return "gloo"
    if without:
        rank = without[0]
        raise CourseError(
            f"rank {rank} on {seats[rank].node} sees no GPU, {count(len(seats) - len(without), 'other rank')} "
            "has one. Ask Slurm for as many GPUs on each node as it has tasks (--gpus-per-node)."
        )
    first: dict[str, int] = {}
    for rank, seat in enumerate(seats):
        if seat.gpu_id in first:
            raise CourseError(
                f"ranks {first[seat.gpu_id]} and {rank} share one GPU of {seat.node}; NCCL needs one for each. "
                "Start as many ranks on a node as it has GPUs."
            )
        first[seat.gpu_id] = rank
    return "nccl"


def seats_text(seats: Sequence[Seat], by: str) -> str:
    """Who trains, where and over what, in a line."""
    nodes = list(dict.fromkeys(seat.node for seat in seats))
    who = f"{ranks(len(seats))} on {count(len(nodes), 'node')} ({', '.join(nodes)})"
    how = {"alone": "not started by a launcher", "ranks": "ranks of a notebook"}.get(by, f"started by {by}")
    over = f"NCCL, {seats[0].gpu_name}" if backend_for(seats) == "nccl" else "gloo, because there is no GPU"
    return f"{who}, {how}: {over}"


@dataclass(frozen=True)
class Group:
    """The processes of a training, once they have met.

    Attributes:
        rank, world_size: as in `Launch`.
        device: where this rank computes.
        backend: "nccl" or "gloo": what carries the gradients.
        gradients: the group that carries them; None for the default group. What ranks agree on beside the training
            (a stop, the random states) always travels over gloo, from the CPU, so that no GPU has to wait for it.
        said: who trains, where and over what, in a line.
        nodes: each rank's.
        restarts: as in `Launch`.
    """

    rank: int
    world_size: int
    device: "torch.device"
    backend: str
    gradients: "dist.ProcessGroup | None"
    said: str
    nodes: tuple[str, ...]
    restarts: int = 0


@contextlib.contextmanager
def process_group(launch: Launch | None = None) -> Iterator[Group]:
    """Meet the other processes. Ranks of a notebook have met already: their default group is used, and left alone.

    Every rank sends every other its seat, once, over gloo. Rank 0 prints the line that says who trains over what.
    Under torchrun and srun rank 0 listens on a port that is open to whoever reaches the node, without a password:
    on a machine that strangers use, the ranks of `course.start` do not.

    Raises:
        CourseError: see `backend_for`.
    """
    import torch
    import torch.distributed as dist

    met_before = dist.is_initialized()
    if met_before:
        local = int(os.environ.get("SLURM_LOCALID") or dist.get_rank())
        launch = Launch("ranks", dist.get_rank(), dist.get_world_size(), local)
    else:
        launch = launch or find_launch()
        _meet(launch)
    seats: list[Seat] = [Seat("")] * launch.world_size
    dist.all_gather_object(seats, own_seat(launch.local_rank))
    backend, gradients, device = backend_for(seats), None, torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", seats[launch.rank].gpu)
        torch.cuda.set_device(device)
        gradients = dist.new_group(backend="nccl", timeout=TIMEOUT)
    said = seats_text(seats, launch.by)
    if launch.rank == 0:
        print(said, flush=True)
    nodes = tuple(seat.node for seat in seats)
    clean = launch.world_size == 1
    try:
        yield Group(launch.rank, launch.world_size, device, backend, gradients, said, nodes, launch.restarts)
        clean = True
    finally:
        if clean and not met_before:  # after an error the process ends, and does not wait for the others here
            dist.destroy_process_group()


def _meet(launch: Launch) -> None:
    """Make the default group, over gloo."""
    import torch.distributed as dist

    known = {"rank": launch.rank, "world_size": launch.world_size, "timeout": TIMEOUT}
    if launch.by == "torchrun":
        store, _, _ = next(dist.rendezvous("env://", launch.rank, launch.world_size, timeout=TIMEOUT))
        dist.init_process_group("gloo", store=dist.PrefixStore(_attempt(), store), **known)
    elif launch.by == "srun":
        dist.init_process_group("gloo", init_method=f"tcp://{launch.master}", **known)
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), **known)


def _attempt() -> str:
    """What tells this try of torchrun's from those before: they share its store, with the addresses of the dead in it.

    Raises:
        CourseError: torchruns on several nodes count their tries each for itself, so there must be no such sharing.
    """
    tries = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1":
        return "training"
    if int(os.environ.get("GROUP_WORLD_SIZE", 1)) > 1:
        if tries != "0":
            raise CourseError(
                "torchrun's second try on several nodes would find the addresses of the first. "
                "`export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` before torchrun gives every try a store of its own."
            )
        return "training"
    return f"training-{tries}"

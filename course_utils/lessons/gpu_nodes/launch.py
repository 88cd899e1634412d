"""Which of how many processes this one is, and where they meet: every launcher says it in its own words."""

import contextlib
import gc
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.gpu_seats import PROCESSORS, Seat, assign_gpus, own_seat
from course_utils.tcp_store import tcp_store
from course_utils.words import count, ranks

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

PORTS = range(20_000, 30_000)
"""Where rank 0 listens under srun, unless $MASTER_PORT says otherwise; the job's number chooses one of them."""
LINE = 100
"""Letters in a line of a log; a page shows a few more, and cuts longer lines."""
TIMEOUT = timedelta(minutes=10)
NOTEBOOK_TIMEOUT = timedelta(seconds=60)
"""After which NCCL gives a collective up; somebody sits before a notebook and waits."""


@dataclass(frozen=True)
class Launch:
    """What the launcher tells a process.

    Attributes:
        by: "torchrun", "srun", "ranks" (those of `course.start`) or "alone".
        rank: of this process among all.
        world_size: how many there are.
        local_rank: of this process among those of its node.
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
        raise CourseError(f"{nodes!r} is not a list of nodes. `scontrol show hostnames` takes one apart.")
    return "".join(part for part in found.groups() if part)


def seats_text(nodes: Sequence[str], by: str, over: str) -> str:
    """Who trains, where and over what, in a line, or in more if it is long: what is cut off at the end is the reason.

    Args:
        nodes: each rank's.
        by: what started them, as in `Launch`.
        over: what carries the gradients, as in `Placement`.
    """
    names = list(dict.fromkeys(nodes))
    who = f"{ranks(len(nodes))} on {count(len(names), 'node')} ({', '.join(names)})"
    how = {"alone": "not started by a launcher", "ranks": "ranks of a notebook"}.get(by, f"started by {by}")
    return textwrap.fill(f"{who}, {how}: {over}", LINE, subsequent_indent="  ", break_on_hyphens=False)


@dataclass(frozen=True)
class Group:
    """The processes of a training, once they have met.

    Attributes:
        rank, world_size: as in `Launch`.
        device: where this rank computes.
        backend: "nccl" or "gloo": what carries the gradients.
        gradients: the group that carries them; None for the default group. What ranks agree on beside the training
            (a stop, the random states) always travels over gloo, from the CPU, so that no GPU has to wait for it.
        nodes: each rank's.
        restarts: as in `Launch`.
    """

    rank: int
    world_size: int
    device: "torch.device"
    backend: str
    gradients: "dist.ProcessGroup | None"
    nodes: tuple[str, ...]
    restarts: int = 0


@contextlib.contextmanager
def process_group(launch: Launch | None = None, backend: str | None = None) -> Iterator[Group]:
    """Meet the other processes. Ranks of a notebook have met already: their default group is used, and left alone.

    Every rank sends every other its seat, once, over gloo. Rank 0 prints the line that says who trains over what.
    Under torchrun and srun rank 0 listens on a port without a password, under torchrun on all addresses of the node:
    on a machine that strangers use, the ranks of `course.start` do not.

    Args:
        launch: found in the environment without.
        backend: "nccl" where nothing else will do, "gloo" for processors; without, NCCL where every rank has a GPU.

    Raises:
        CourseError: NCCL was asked for, and cannot serve these ranks.
    """
    import torch
    import torch.distributed as dist

    met_before = dist.is_initialized()
    if met_before:
        launch = Launch("ranks", dist.get_rank(), dist.get_world_size(), 0)
    else:
        launch = launch or find_launch()
        _meet(launch)
    seats: list[Seat] = [Seat("")] * launch.world_size
    dist.all_gather_object(seats, own_seat())
    nodes = tuple(seat.node for seat in seats)
    placement = PROCESSORS if backend == "gloo" else assign_gpus(seats)
    if backend == "nccl":
        placement.require_nccl()
    gradients, device = None, torch.device("cpu")
    if placement.backend == "nccl":
        device = torch.device("cuda", placement.numbers[launch.rank])
        torch.cuda.set_device(device)
        gradients = dist.new_group(backend="nccl", timeout=NOTEBOOK_TIMEOUT if met_before else TIMEOUT)
    if launch.rank == 0:
        print(seats_text(nodes, launch.by, placement.over), flush=True)
    clean = launch.world_size == 1
    try:
        yield Group(launch.rank, launch.world_size, device, placement.backend, gradients, nodes, launch.restarts)
        clean = True
    finally:
        if clean:  # after an error the process ends, and does not wait for the others here
            if gradients is not None or not met_before:
                gc.collect()  # a DDP model is in a cycle of references, and torch may crash if it outlives its group
            if gradients is not None:
                dist.destroy_process_group(gradients)  # a communicator of NCCL's keeps some 100 MB of each GPU
            if not met_before:
                dist.destroy_process_group()


def _meet(launch: Launch) -> None:
    """Make the default group, over gloo.

    Raises:
        CourseError: under srun, the port at which the processes would meet is taken.
    """
    import torch.distributed as dist

    known = {"rank": launch.rank, "world_size": launch.world_size, "timeout": TIMEOUT}
    if launch.by == "torchrun":
        store, _, _ = next(dist.rendezvous("env://", launch.rank, launch.world_size, timeout=TIMEOUT))
        dist.init_process_group("gloo", store=dist.PrefixStore(_attempt(), store), **known)
    elif launch.by == "srun":
        host, _, port = launch.master.rpartition(":")
        store = tcp_store(host, int(port), launch.world_size, TIMEOUT, serve=launch.rank == 0)
        dist.init_process_group("gloo", store=store, **known)
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

"""Which rank computes on which GPU, and what carries gradients between ranks: decided once, from what all ranks told.

No environment variable is asked. What a launcher says of local ranks reaches processes that it did not start: inside a
job of Slurm's every rank of a notebook inherits SLURM_LOCALID=0 (sbatch(1), output environment variables).
"""

import os
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.machine import gpus
from course_utils.words import count


@dataclass(frozen=True)
class Gpu:
    """A GPU as torch shows it to a process.

    Attributes:
        id: the same for all processes that see this GPU.
        name: such as "NVIDIA H100 80GB HBM3"; a part of a GPU has "MIG" in it.
    """

    id: str
    name: str


@dataclass(frozen=True)
class Seat:
    """Where a process sits; every process tells all others.

    Attributes:
        node: the name of its machine.
        gpus: those that torch can use in this process, in torch's order.
        trouble: why torch can use none though the driver shows some; "" otherwise.
    """

    node: str
    gpus: tuple[Gpu, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Placement:
    """What all ranks decide alike.

    Attributes:
        backend: "nccl" where every rank has a GPU of its own, else "gloo", on processors.
        numbers: the number that each rank's GPU has for that rank; empty with "gloo".
        gpus: the names of the GPUs.
        without_nccl: why it is gloo, as a clause; "" where GPUs are left alone.
    """

    backend: str
    numbers: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    without_nccl: str = ""

    @property
    def over(self) -> str:
        """What carries gradients, for people: "NCCL, NVIDIA H100", or "gloo, because there is no GPU"."""
        if self.backend == "nccl":
            return f"NCCL, {', '.join(self.gpus)}"
        return f"gloo, because {self.without_nccl}" if self.without_nccl else "gloo, on processors"

    def require_nccl(self) -> None:
        """Go on only where NCCL carries.

        Raises:
            CourseError: it does not; the text says why.
        """
        if self.backend != "nccl":
            raise CourseError(f'backend="nccl" is not possible here: {self.without_nccl or self.over}.')


PROCESSORS = Placement("gloo")
"""Where GPUs are left alone."""


def own_seat() -> Seat:
    """This process's node, and the GPUs that torch can use in it."""
    import torch

    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    with warnings.catch_warnings(record=True) as caught:  # torch says in a warning why it finds none
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available:
        return Seat(node, trouble=_trouble(len(gpus()), torch.__version__, torch.version.cuda, caught))
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return Seat(node, tuple(Gpu(str(gpu.uuid), gpu.name) for gpu in found))


def _trouble(shown: int, version: str, cuda: str | None, caught: Sequence[warnings.WarningMessage]) -> str:
    """Why torch can use none of the GPUs that the driver shows; "" where it shows none."""
    if not shown:
        return ""
    if cuda is None:
        return f"torch {version} is a build without CUDA, so it cannot use the {count(shown, 'GPU')} here"
    why = str(caught[0].message).split(". ")[0].strip() if caught else "it does not say why"
    return f"torch {version}, made for CUDA {cuda}, can use none of the {count(shown, 'GPU')} here: {why}"


def assign_gpus(seats: Sequence[Seat]) -> Placement:
    """Give every rank a GPU of its own, the n-th rank of a node its n-th; where that cannot be, nobody gets one.

    A process may see all GPUs of its node, or only its own one (`srun --gpus-per-task=1`).
    """
    numbers, holders = [], dict[str, int]()
    for rank, seat in enumerate(seats):
        if not seat.gpus:
            return Placement("gloo", without_nccl=_without(seats))
        before = sum(other.node == seat.node for other in seats[:rank])
        numbers.append(before % len(seat.gpus))
        holders[seat.gpus[numbers[-1]].id] = rank
    chosen = [seat.gpus[number] for seat, number in zip(seats, numbers, strict=True)]
    if len(seats) > 1 and any("MIG" in gpu.name.split() for gpu in chosen):
        why = f"NCCL does not connect parts of a GPU (MIG: {chosen[0].name})"
        return Placement("gloo", without_nccl=why)
    if len(holders) < len(seats):
        return Placement("gloo", without_nccl=_shared(seats))
    return Placement("nccl", tuple(numbers), tuple(dict.fromkeys(gpu.name for gpu in chosen)))


def _without(seats: Sequence[Seat]) -> str:
    """Why ranks have no GPU, some or all."""
    first = next(seat for seat in seats if not seat.gpus)
    if first.trouble:
        return first.trouble
    without = [rank for rank, seat in enumerate(seats) if not seat.gpus]
    if len(without) == len(seats):
        return "there is no GPU"
    having = len(seats) - len(without)
    return (
        f"rank {without[0]} on {first.node} sees no GPU and {count(having, 'other rank')} "
        f"{'does' if having == 1 else 'do'}. In a job, --gpus-per-node asks for as many on each "
        "node as it has ranks"
    )


def _shared(seats: Sequence[Seat]) -> str:
    """On which node ranks would share a GPU; NCCL rejects that."""
    for node in dict.fromkeys(seat.node for seat in seats):
        here = [seat for seat in seats if seat.node == node]
        seen = {gpu.id for seat in here for gpu in seat.gpus}
        if len(seen) < len(here):
            return f"{node} has {count(len(seen), 'GPU')} for {count(len(here), 'rank')}, and NCCL wants one for each"
    return "ranks see different GPUs, and two would share one; NCCL wants one for each"

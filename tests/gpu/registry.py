"""What a check is, where it is registered, and what it may say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workshop.bench.rows import Row


@dataclass(frozen=True)
class Where:
    """Where the checks run.

    Attributes:
        device: "cuda" or "cpu".
        gpus: how many there are; 0 on "cpu".
        start: how processes are started, "spawn" or "fork"; what has used a GPU cannot fork.
        ranks: how many ranks to try; 0 for 1, 2, 4, 8 up to the number of GPUs.
        shared: ranks may share a GPU. Right numbers they show, but no times: contexts take turns on it.
        out: a folder for what a check brings home beside its rows, such as traces; "" for none.
    """

    device: str
    gpus: int
    start: str
    ranks: int = 0
    shared: bool = False
    out: str = ""

    @property
    def cuda(self) -> bool:
        """On a GPU?"""
        return self.device == "cuda"

    @property
    def backend(self) -> str:
        """What carries messages between ranks."""
        return "nccl" if self.cuda else "gloo"

    @property
    def world_sizes(self) -> list[int]:
        """With how many ranks something that is cut over ranks is tried: 1, and powers of two up to all GPUs."""
        if self.ranks:
            return [self.ranks]
        return [p for p in (1, 2, 4, 8) if p <= self.gpus] if self.cuda else [2]

    def pick(self, on_gpu, on_cpu):
        """A size for a GPU, and the small one with which the same code is tried on a processor."""
        return on_gpu if self.cuda else on_cpu


class Needs(Exception):
    """What is missing for a check: "a GPU", "two GPUs", "scikit-learn"."""


@dataclass(frozen=True)
class Missing:
    """A row that could not be measured, and what it needs."""

    metric: str
    needs: str


Answer = Iterator[Row | Missing]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: as --only takes it.
        lessons: whose code for GPUs it runs.
        shows: in a line.
        run: yields what it measures; raises `Needs` where it cannot.
        seconds: that it may take, unless --timeout gives all checks a limit.
    """

    name: str
    lessons: tuple[int, ...]
    shows: str
    run: Callable[[Where], Answer]
    seconds: float = 90


CHECKS: dict[str, Check] = {}
PARTS = {
    1: ("whole-ladder", "feeding", "orders", "profile", "small-batches", "matmul", "bandwidth", "widths"),
    2: (
        "recorded-order",
        "recorded-backward",
        "flight-recorder",
        "collectives",
        "data-parallel",
        "sharded",
        "sharded-memory",
        "overlap",
    ),
    3: ("tensor-parallel", "sync-batch-norm", "bucket-streams", "slow-programs", "training-program", "checkpointing"),
    4: (
        "allocator",
        "counted-tensors",
        "memory-in-trace",
        "roofline",
        "step-parts",
        "precision-ladder",
        "asynchrony",
        "side-stream",
        "events",
        "bus-bandwidth",
        "mpi-and-gpus",
    ),
    5: ("batch-rung", "transformer-mfu", "planner-steps"),
}
"""For a machine that is lent for minutes: each part takes under nine, the most valuable first."""


def check(*lessons: int, shows: str, seconds: float = 90) -> Callable:
    """Register a function under its name, "bus_bandwidth" as "bus-bandwidth"; it may take so many seconds."""

    def register(run: Callable[[Where], Answer]) -> Callable[[Where], Answer]:
        name = run.__name__.replace("_", "-")
        CHECKS[name] = Check(name, lessons, shows, run, seconds)
        return run

    return register


def needs_gpu(where: Where) -> None:
    """Say so where there is none.

    Raises:
        Needs: a GPU.
    """
    if not where.cuda:
        raise Needs("a GPU")


def equal(metric: str, difference: float, target: float = 1e-9) -> Row:
    """A row for the largest difference between two results that should be equal."""
    return Row("gpu", metric, difference, "", "lower", target, 0.0, 1)

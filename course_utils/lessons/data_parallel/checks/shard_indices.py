"""The check of `shard_indices`: what torch's own `DistributedSampler` deals out."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, one_after_another
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor


def dealt(n: int, rank: int, world_size: int, epoch: int, seed: int) -> "Tensor":
    """The indices of a rank, by torch's own sampler."""
    import torch
    from torch.utils.data import DistributedSampler

    sampler = DistributedSampler(range(n), num_replicas=world_size, rank=rank, seed=seed)
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler), dtype=torch.int64)


def drawn_after(function: Callable, seed: int, *arguments: int) -> float:
    """Call the learner's function in a program that has seeded torch; return the number that the program draws next."""
    import torch

    torch.manual_seed(seed)
    function(*arguments)
    return torch.rand((), dtype=torch.float64).item()


def _next_number(seed: int) -> float:
    import torch

    return torch.rand((), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).item()


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(n: int, world_size: int, epoch: int = 0, first: int = 0, key: str = "") -> Case:
        seed = int(rng.integers(1, 10**6))
        shown = range(first, min(first + available, world_size))
        arguments = [(n, rank, world_size, epoch, seed) for rank in shown]
        part = "" if len(shown) == world_size else f" ({shown[0]} to {shown[-1]} looked at)"
        only = "only " if n < world_size else ""
        label = f"{only}{count(n, 'example')} for {ranks(world_size)}{part}, epoch {epoch}"
        key = "few-examples" if n < world_size else key
        return Case(label, arguments, [dealt(*given) for given in arguments], with_comm=False, key=key)

    def several(calls: Sequence[tuple]) -> Case:
        found = [dealt(*given) for given in calls]
        label = f"{count(len(calls), 'call')}, one after another; the first for 13 examples, 4 ranks"
        more = {"with_comm": False, "harness": one_after_another, "key": AFTER_ANOTHER_CALL}
        names = tuple(f"in call {number}" for number in range(1, len(calls) + 1))
        return Case(label, [(calls,)], [found], calls=names, **more)

    yield case(12, 4)
    yield case(12, 4, epoch=int(rng.integers(1, 5)))
    yield case(int(rng.integers(5, 30)) * 3, 3, epoch=2)
    yield case(10, 4, epoch=1, key="left-over")
    yield case(int(rng.integers(20, 60)) * 7 + 5, 7, epoch=3, first=3)
    yield case(int(rng.integers(10, 40)), 1, epoch=1)
    bare = [(11, rank, 4) for rank in range(min(4, available))]
    found = [dealt(*given, 0, 0) for given in bare]
    yield Case("11 examples for 4 ranks, neither epoch nor seed named", bare, found, with_comm=False, key="defaults")
    yield case(3, 4)
    yield case(1, 4, epoch=1)
    yield case(1437, 4, epoch=int(rng.integers(100)))
    theirs, own, other = (int(number) for number in rng.choice(1000, 3, replace=False))
    yield several([(13, 1, 4, epoch, seed) for epoch, seed in ((2, own), (0, own), (0, other))])
    yield several([(13, 1, 4, 2, own), (13, 1, 4, 2, own), (9, 1, 4, 2, own), (13, 2, 4, 2, own), (13, 1, 3, 2, own)])
    label = "12 examples for 4 ranks; then the program draws a number of its own from torch"
    more = {"with_comm": False, "harness": drawn_after, "key": "next-number"}
    yield Case(label, [(theirs, 12, 0, 4, 0, own)], [_next_number(theirs)], **more)


EXERCISE = Exercise(
    library="shards",
    number=2,
    minutes=10,
    difficulty=2,
    turn="draw the order, pad it, take every world_size-th entry",
    title="which examples are mine?",
    cases=_cases,
    needs_torch=True,
    hints=(
        "All ranks must draw the same order without asking each other, and a new order in each epoch. What do they all "
        "know?",
        "`order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))`. Repeat it until it "
        "is long enough, cut it off after world_size · ⌈n / world_size⌉ entries, and take `[rank::world_size]`.",
    ),
    praise=lambda outcome: "every rank draws the same order and takes its own part, as torch's DistributedSampler does",
)

"""The check of `shard_indices`: what torch's own `DistributedSampler` deals out."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.lessons.data_parallel.checks import LESSON
from course_utils.lessons.data_parallel.checks.common import same
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

DRAWN = "From which seed is the order drawn: the same for all ranks, another one for every epoch?"


def dealt(n: int, rank: int, world_size: int, epoch: int, seed: int) -> "Tensor":
    """The indices of a rank, by torch's own sampler."""
    import torch
    from torch.utils.data import DistributedSampler

    if n == 0:
        return torch.empty(0, dtype=torch.int64)
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
    def case(n: int, world_size: int, epoch: int = 0, first: int = 0) -> Case:
        seed = int(rng.integers(1, 1000))
        shown = range(first, min(first + available, world_size))
        arguments = [(n, rank, world_size, epoch, seed) for rank in shown]
        part = "" if len(shown) == world_size else f" ({shown[0]} to {shown[-1]} looked at)"
        label = f"{n} example{'' if n == 1 else 's'} for {ranks(world_size)}{part}, epoch {epoch}"
        return Case(label, arguments, [dealt(*given) for given in arguments], with_comm=False)

    yield case(12, 4)
    yield case(12, 4, epoch=int(rng.integers(1, 5)))
    yield case(int(rng.integers(5, 30)) * 3, 3, epoch=2)
    yield case(10, 4, epoch=1)
    yield case(int(rng.integers(20, 60)) * 7 + 5, 7, epoch=3, first=3)
    yield case(int(rng.integers(10, 40)), 1, epoch=1)
    yield case(3, 4)
    yield case(1, 4, epoch=1)
    yield case(0, 2)
    yield case(1437, 4, epoch=int(rng.integers(100)))
    theirs, own = (int(number) for number in rng.choice(1000, 2, replace=False))
    label = "12 examples for 4 ranks; then the program draws a number of its own from torch"
    yield Case(label, [(theirs, 12, 0, 4, 0, own)], [_next_number(theirs)], with_comm=False, harness=drawn_after)


def _numbers(result: Any) -> list[int]:
    return [] if result is NO_RESULT else [int(index) for index in result]


def _whole(case: Case, epoch: int | None = None) -> list[int]:
    """The order of all examples, filled up."""
    n, _, world_size, given, seed = case.arguments[0]
    parts = [dealt(n, rank, world_size, given if epoch is None else epoch, seed) for rank in range(world_size)]
    return [int(index) for group in zip(*parts, strict=True) for index in group]


def _lengths(case: Case, outcome: Outcome) -> tuple[set[int], int]:
    return {len(_numbers(result)) for result in outcome.results}, len(case.expected[0])


def _returns_no_indices(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and not all(hasattr(result, "tolist") for result in outcome.results)


def _few_examples(case: Case, outcome: Outcome) -> bool:
    n, _, world_size, *_ = case.arguments[0]
    return (
        n < world_size and not outcome.run or n < world_size and _lengths(case, outcome)[0] != {len(case.expected[0])}
    )


def _unlike_lengths(case: Case, outcome: Outcome) -> bool:
    got, right = _lengths(case, outcome)
    return right in got and right - 1 in got


def _examples_lost(case: Case, outcome: Outcome) -> bool:
    got, right = _lengths(case, outcome)
    return got == {right - 1}


def _too_many(case: Case, outcome: Outcome) -> bool:
    got, right = _lengths(case, outcome)
    return min(got) > right


def _in_order(case: Case, outcome: Outcome) -> bool:
    n, _, world_size, *_ = case.arguments[0]
    return n >= world_size > 1 and all(sorted(_numbers(result)) == _numbers(result) for result in outcome.results)


def _same_every_epoch(case: Case, outcome: Outcome) -> bool:
    n, _, world_size, epoch, seed = case.arguments[0]
    firsts = [dealt(n, given[1], world_size, 0, seed) for given in case.arguments]
    return epoch > 0 and all(same(got, first) for got, first in zip(outcome.results, firsts, strict=True))


def _other_rank(case: Case, outcome: Outcome) -> bool:
    n, _, world_size, epoch, seed = case.arguments[0]
    nexts = [dealt(n, (given[1] + 1) % world_size, world_size, epoch, seed) for given in case.arguments]
    return world_size > 1 and all(same(got, other) for got, other in zip(outcome.results, nexts, strict=True))


def _blocks(case: Case, outcome: Outcome) -> bool:
    length, order = len(case.expected[0]), _whole(case)
    starts = [given[1] * length for given in case.arguments]
    return all(_numbers(got) == order[at : at + length] for got, at in zip(outcome.results, starts, strict=True))


def _filled_otherwise(case: Case, outcome: Outcome) -> bool:
    n, _, world_size, *_ = case.arguments[0]
    right = [_numbers(result)[:-1] == _numbers(wanted)[:-1] for result, wanted in _pairs(case, outcome)]
    return n % world_size > 0 and all(right)


def _pairs(case: Case, outcome: Outcome) -> list[tuple[Any, Any]]:
    return list(zip(outcome.results, case.expected, strict=True))


def _seeds_all_of_torch(case: Case, outcome: Outcome) -> bool:
    return case.harness is drawn_after


def _drawn_otherwise(case: Case, outcome: Outcome) -> bool:
    return all(len(_numbers(got)) == len(wanted) for got, wanted in _pairs(case, outcome))


SHARD_INDICES = Exercise(
    name="shard_indices",
    library="course_utils.lessons.data_parallel.shards:shard_indices",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=2,
    turn="draw the order, fill it up, take every world_size-th",
    title="which examples are mine?",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "All ranks must cut the same order into pieces, and none may ask another. What do they have in common from "
        "which each could draw the order for itself, so that it is another one in every epoch?",
        "`order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))`. Repeat it until it is "
        "long enough, cut it off at world_size · ⌈n / world_size⌉, and take `[rank::world_size]`.",
    ),
    mistakes=(
        Mistake("Whose generator did you draw from: your own, or the one of the whole program?", _seeds_all_of_torch),
        Mistake("Do you return a tensor of indices?", _returns_no_indices),
        Mistake("Does it also work with fewer examples than ranks?", _few_examples),
        Mistake("What does a rank do while another one has a step more than it?", _unlike_lengths),
        Mistake("Which examples does nobody ever see?", _examples_lost),
        Mistake("How many examples does one rank work on, and how many all of them?", _too_many),
        Mistake("Were the examples shuffled before they were dealt out?", _in_order),
        Mistake("What is different in the next epoch?", _same_every_epoch),
        Mistake("Do the ranks count from 0?", _other_rank),
        Mistake("Are the first batches of all ranks, taken together, the first batch of one process?", _blocks),
        Mistake("With which examples is the order filled up?", _filled_otherwise),
        Mistake(DRAWN, _drawn_otherwise),
    ),
    praise=lambda outcome: "every rank draws the same order and takes its own part, as torch's DistributedSampler does",
)

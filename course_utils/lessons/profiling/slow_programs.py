"""The five slow programs by their number: what each is given, a profile of it on ranks, and a race with the faster one.

A page that wants to ask for the cause says `PROGRAMS[4]`, not the name of a module.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.data import digits
from course_utils.lessons.profiling.record_profiles import Profile, profile_ranks
from course_utils.lessons.profiling.slow import (
    TARGETS,
    host_waits,
    input_pipeline,
    no_overlap,
    small_kernels,
    unbalanced,
)
from course_utils.measuring import Compared, compare, slowest_rank

if TYPE_CHECKING:
    from course_utils.lessons.profiling.lanes import Lanes
    from course_utils.ranks.ranks import Ranks


@dataclass(frozen=True)
class SlowProgram:
    """A slow program and a faster one.

    Attributes:
        cause: why it is slow, in a few words.
        slow, fast: both take what `inputs` gives, and give back losses.
        inputs: on a rank: what both are given; files go into the folder.
        target: how many times as fast the fast one should be, at least.
        ranks: "one" or "all": on how many it runs.
    """

    cause: str
    slow: Callable[..., list[float]]
    fast: Callable[..., list[float]]
    inputs: Callable[[Path], tuple]
    target: float
    ranks: str = "all"


def _photos(folder: Path) -> tuple:
    paths = input_pipeline.write_photos(folder)
    return paths, digits().train_y[: len(paths)]


def _digits(folder: Path, count: int | None = None) -> tuple:
    data = digits()
    return data.train_x[:count], data.train_y[:count]


def _texts(folder: Path) -> tuple:
    return (unbalanced.sample_texts(),)


def _own_vectors(folder: Path) -> tuple:
    """Other ones on every rank."""
    import torch
    import torch.distributed as dist

    random = torch.Generator().manual_seed(dist.get_rank())
    return tuple(torch.randn(2, 4, no_overlap.WIDTH, generator=random))


PROGRAMS = {
    1: SlowProgram("input pipeline", input_pipeline.slow_1, input_pipeline.speed_up_1, _photos, TARGETS[1], "one"),
    2: SlowProgram("waits for a number", host_waits.slow_2, host_waits.speed_up_2, _digits, TARGETS[2]),
    3: SlowProgram(
        "many small operations",
        small_kernels.slow_3,
        small_kernels.speed_up_3,
        partial(_digits, count=64),
        TARGETS[3],
        "one",
    ),
    4: SlowProgram("unbalanced ranks", unbalanced.slow_4, unbalanced.speed_up_4, _texts, TARGETS[4]),
    5: SlowProgram("no overlap", no_overlap.slow_5, no_overlap.speed_up_5, _own_vectors, TARGETS[5]),
}
"""In the order of the exercises."""
CHOICES = dict(zip("abcde", sorted(program.cause for program in PROGRAMS.values()), strict=True))
"""Letter → cause, for a prediction; in another order than the programs."""


def letter_of(number: int) -> str:
    """The letter of a program's cause in `CHOICES`."""
    return next(letter for letter, cause in CHOICES.items() if cause == PROGRAMS[number].cause)


def profile_program(ranks: "Ranks", number: int, fast: bool = False) -> Profile:
    """Profile a whole run of a program, after another one as warm-up; on as many ranks as it needs."""
    size = 1 if PROGRAMS[number].ranks == "one" else None
    return profile_ranks(ranks, _whole_run, number, fast, warm_up=1, steps=1, world_size=size)


def race(ranks: "Ranks", number: int, rounds: int = 9, until: float | None = None) -> Compared:
    """Run the slow and the better one by turns, A B A B; see `compare`, whose `target` is `until`."""
    size = 1 if PROGRAMS[number].ranks == "one" else None
    return ranks.run(both_by_turns, number, rounds, until, backend="gloo", ranks=size).results[0]


def profile_like(ranks: "Ranks", number: int, taken: Compared, tries: int = 3) -> "list[Lanes]":
    """Profile the slow and the better one, until rank 0's times are as far apart as in the race; gives its lanes.

    A profile is a single run, and any single run may be disturbed: of `tries` pairs the one is kept whose ratio is
    nearest to the race's median. The first ratio that lies among those of the race's rounds ends it.
    """
    pairs: list[list[Lanes]] = []
    for _ in range(tries):
        pairs.append([profile_program(ranks, number, fast).lanes[0] for fast in (False, True)])
        if taken.ratios.low <= ratio_of(pairs[-1]) <= taken.ratios.high:
            return pairs[-1]
    return min(pairs, key=lambda pair: abs(math.log(ratio_of(pair) / taken.times)))


def ratio_of(pair: "Sequence[Lanes]") -> float:
    """How many times as long the first one took."""
    slow, better = pair
    return slow.seconds / better.seconds


def both_by_turns(number: int, rounds: int, until: float | None = None) -> Compared:
    """On every rank: both programs by turns."""
    program = PROGRAMS[number]
    with tempfile.TemporaryDirectory(prefix="course-profile-") as folder:
        given = program.inputs(Path(folder))
        slow, fast = (partial(function, *given) for function in (program.slow, program.fast))
        names = "the better program", "the slow one"
        return compare(fast, slow, names=names, target=until, rounds=rounds, slowest=slowest_rank)


def _whole_run(number: int, fast: bool) -> Callable[[], Any]:
    """On every rank, for `profile_ranks`: one step is a whole run."""
    program = PROGRAMS[number]
    folder = tempfile.TemporaryDirectory(prefix="course-profile-")
    given = program.inputs(Path(folder.name))

    def step() -> list[float]:
        assert folder  # it is gone when this function is
        return (program.fast if fast else program.slow)(*given)

    return step

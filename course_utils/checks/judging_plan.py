"""On which ranks an answer is judged, as a plan: stages, each with ranks and the cases that run on them.

What needs no communicator runs on any ranks, and on none. What needs a communicator and NumPy alone runs on virtual
ranks first: they are many and count exactly, whatever else the machine does. Real ranks show what only they can: time,
and messages that pass one another.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from course_utils.checks.cases import after_the_others
from course_utils.checks.exercise import Case, Exercise
from course_utils.errors import CourseError
from course_utils.ranks.engine.process_settings import use_default_settings
from course_utils.ranks.interface import RanksInterface
from course_utils.ranks.offline.stand_ins import WorkerCalls, WorkerVirtualRanks
from course_utils.words import count

MOST = 64
"""Virtual ranks in the largest case."""
_FEW = 8
"""Up to so many ranks there is a case for each number of them."""
_USUAL = 4
"""For how many ranks cases are drawn where none run."""
_SECONDS = 10.0
"""The most that a case computes on many virtual ranks, which share one core."""

Draw = Callable[[int], Sequence[Case]]
"""The cases of a stage for a seed."""


class On(Enum):
    """What the ranks of a stage are."""

    ANY = auto()
    VIRTUAL = auto()
    REAL = auto()


class NeedsRanks(CourseError):
    """An exercise that only real ranks can judge, and none run."""


@dataclass(frozen=True)
class JudgingStage:
    """Cases that run on the same ranks, in order, until the first that fails.

    Attributes:
        ranks: on which the answer runs.
        draw: the stage's cases for a seed.
        on: what the ranks are.
        limit: seconds of computing after which a case is ended; None: the exercise's.
        may_end_early: a case that takes too long ends the stage, and not the answer.
        search_ranks: bring the ranks on which programs with known mistakes run.
    """

    ranks: RanksInterface
    draw: Draw
    on: On = On.ANY
    limit: float | None = None
    may_end_early: bool = False
    search_ranks: Callable[[], RanksInterface] | None = None

    def cases(self, seed: int) -> list[Case]:
        """The cases that fit on the ranks."""
        return [case for case in self.draw(seed) if len(case.arguments) <= self.ranks.world_size]

    def left_out(self, seed: int) -> int:
        """The number of ranks of the largest case that does not fit; 0 where all do."""
        sizes = (len(case.arguments) for case in self.draw(seed))
        return max((size for size in sizes if size > self.ranks.world_size), default=0)


@use_default_settings()
def cases_of(exercise: Exercise, seed: int, world_size: int) -> list[Case]:
    """The exercise's cases for this many ranks, and one of them after others; the same seed gives the same numbers."""
    cases = list(exercise.cases(np.random.default_rng(seed), world_size))
    return [*cases, *after_the_others(cases)]


def on_these(
    exercise: Exercise, ranks: RanksInterface, search_ranks: Callable[[], RanksInterface] | None = None
) -> JudgingStage:
    """The one stage of an answer that is judged on these ranks alone."""
    return JudgingStage(ranks, _draw(exercise, ranks.world_size), On.REAL, search_ranks=search_ranks)


def plan(exercise: Exercise, ranks: RanksInterface | None, seed: int) -> list[JudgingStage]:
    """Where an answer is judged, from as few real ranks as it takes.

    Args:
        exercise: what is asked for.
        ranks: the running ranks; None where none run.
        seed: of the cases.

    Raises:
        NeedsRanks: only real ranks can judge it, and none run.
    """
    draw = _draw(exercise, ranks.world_size if ranks else _USUAL)
    cases = draw(seed)
    if needs_nothing(cases):
        return [JudgingStage(ranks or WorkerCalls(_USUAL), draw)]
    real = [JudgingStage(ranks, draw, On.REAL)] if ranks else []
    if fits_virtual_ranks(exercise, cases):
        return [*_virtual_stages(exercise, draw), *real]
    if not real:
        raise NeedsRanks(f"No ranks are running yet. {start_first(exercise)}")
    return real


def start_first(exercise: Exercise) -> str:
    """What to do where real ranks are missing."""
    return f"Run `{exercise.start(_USUAL)}` first, then this cell again."


def needs_nothing(cases: Sequence[Case]) -> bool:
    """Whether each case can do without any other rank."""
    return not any(case.with_comm or case.backend for case in cases)


def fits_virtual_ranks(exercise: Exercise, cases: Sequence[Case]) -> bool:
    """Whether the cases need a communicator and NumPy, and nothing else."""
    needs_more = exercise.needs_torch or exercise.shares_files or exercise.link
    return not needs_more and not any(case.backend for case in cases) and not all(case.timed for case in cases)


def _draw(exercise: Exercise, world_size: int) -> Draw:
    """The exercise's cases for this many ranks, by seed; drawn once, as the drawing may train a model."""
    return functools.cache(lambda seed: cases_of(exercise, seed, world_size))


def _virtual_stages(exercise: Exercise, draw: Draw) -> list[JudgingStage]:
    """The exercise's cases, but for those that measure time; then a case for each larger number of ranks."""

    def untimed(seed: int) -> list[Case]:
        return [case for case in draw(seed) if not case.timed]

    @functools.cache
    def larger(seed: int) -> list[Case]:
        most = max(len(case.arguments) for case in untimed(seed))
        first_of_size: dict[int, Case] = {}
        for case in cases_of(exercise, seed, MOST):
            first_of_size.setdefault(len(case.arguments), case)
        return [first_of_size[size] for size in sorted(first_of_size) if size > most and (size <= _FEW or size == MOST)]

    ranks = WorkerVirtualRanks(MOST)
    return [
        JudgingStage(ranks, untimed, On.VIRTUAL),
        JudgingStage(ranks, larger, On.VIRTUAL, limit=_SECONDS, may_end_early=True),
    ]


def too_few(exercise: Exercise, needed: int) -> CourseError:
    """The error where not one case fits on so few ranks."""
    return CourseError(f"{exercise.name} needs {count(needed or 1, 'rank')}. Run `{exercise.start(needed or 4)}`.")

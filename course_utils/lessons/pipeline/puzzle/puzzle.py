"""The puzzle: stages of different lengths, a link on which messages take time, and little memory for any schedule.

The validator finds out whether a schedule can be run, and the simulator when it is done. Nothing here is run.
"""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import COMPUTATIONS, MESSAGES, Action, Schedule, parse_schedule, whole_number
from course_utils.lessons.pipeline.puzzle.best_known import BEST_KNOWN
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import Timing, simulate_schedule
from course_utils.lessons.pipeline.validate import Problem, ProblemKind, peak_in_flight, problems
from course_utils.words import count

_NEARER = 1e-9  # seconds: sums of the same numbers in another order differ by less


@dataclass(frozen=True)
class Puzzle:
    """What is given: stage s lies on rank s, and all of its times are in seconds.

    Attributes:
        forward, input_gradient, weight_gradient: of one micro-batch, for each stage. A whole backward pass takes as
            long as its two halves together.
        latency: until a message that has left arrives.
        message: how long a message occupies its sender's link.
        memory: how many micro-batches' activations each rank can keep, see `validate.in_flight`.
        micro_batches: m.
        name: of a puzzle that a class shares; "" for any other.

    Raises:
        CourseError: not one number of each kind for each stage; a number that is none; memory in which not even 1F1B
            fits.
    """

    forward: tuple[float, ...]
    input_gradient: tuple[float, ...]
    weight_gradient: tuple[float, ...]
    latency: float
    message: float
    memory: tuple[int, ...]
    micro_batches: int
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("micro_batches", self.micro_batches)
        lengths = {len(each) for each in (self.forward, self.input_gradient, self.weight_gradient, self.memory)}
        if len(lengths) != 1 or lengths == {0}:
            raise CourseError("A puzzle has three times and a memory for each stage: four lists of one length.")
        if min(*self.forward, *self.input_gradient, *self.weight_gradient) <= 0 or min(self.latency, self.message) < 0:
            raise CourseError("The times of a puzzle are positive; only its messages may be free.")
        for rank, allowed in enumerate(self.memory):
            least = min(self.ranks - rank, self.micro_batches)
            if allowed < least:
                raise CourseError(f"Rank {rank} can keep {allowed}; 1F1B, which is to be beaten, needs {least} there.")

    @property
    def ranks(self) -> int:
        """P, the stages too."""
        return len(self.forward)

    def simulate(self, schedule: Sequence[Sequence[Action]]) -> Timing:
        """When everything in the schedule happens, with the puzzle's times."""
        times = self.forward, self.input_gradient, self.weight_gradient
        return simulate_schedule(schedule, *times, latency=self.latency, message=self.message)

    def one_f_one_b(self) -> Timing:
        """When everything happens in 1F1B."""
        return self.simulate(one_f_one_b_schedule(self.ranks, self.micro_batches))


@dataclass(frozen=True)
class Judgement:
    """What is said of a schedule.

    Attributes:
        puzzle: the one to solve.
        problems: why it cannot be run; empty where it can be.
        timing: when everything happens; None where it cannot be run.
        peak: the most micro-batches that each rank keeps.
    """

    puzzle: Puzzle
    problems: tuple[Problem, ...]
    timing: Timing | None = None
    peak: tuple[float, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether it can be run, within the memory."""
        return not self.problems

    @property
    def seconds(self) -> float:
        """From the first start to the last end; infinite where it cannot be run."""
        return self.timing.seconds if self.timing else float("inf")

    @property
    def idle_share(self) -> float:
        """The share of all ranks' time in which they do not compute; 1 where it cannot be run."""
        return self.timing.idle_share if self.timing else 1.0

    @functools.cached_property
    def plain(self) -> Timing:
        """1F1B on the same puzzle."""
        return self.puzzle.one_f_one_b()

    @property
    def beats_1f1b(self) -> bool:
        """Whether it can be run, and is done before 1F1B."""
        return self.valid and self.seconds < self.plain.seconds - _NEARER

    def __str__(self) -> str:
        if not self.valid:
            more = len(self.problems) - 1
            return f"cannot be run: {self.problems[0]}" + (f" (and {count(more, 'thing')} more)" if more else "")
        known = best_known(self.puzzle)
        texts = [
            f"{self.seconds:.2f} s, {self.idle_share:.1%} idle, keeps {', '.join(f'{most:g}' for most in self.peak)}",
            f"1F1B: {self.plain.seconds:.2f} s, {self.plain.idle_share:.1%} idle",
        ]
        if known:
            texts.append(f"best known: {known.seconds:.2f} s, {known.idle_share:.1%} idle")
        return "; ".join(texts)


def judge(puzzle: Puzzle, schedule: Sequence[Sequence[Action]]) -> Judgement:
    """Validate a schedule against the puzzle's memory, and time it on the puzzle's stages and link.

    Args:
        schedule: for each rank its actions, with messages or without; whole backward passes, halves, or both.
    """
    wrong = _no_schedule(puzzle, schedule)
    if not wrong:
        asked = {"stages": puzzle.ranks, "micro_batches": puzzle.micro_batches, "memory": puzzle.memory}
        wrong = problems(schedule, **asked)
    if wrong:
        return Judgement(puzzle, tuple(wrong))
    return Judgement(puzzle, (), puzzle.simulate(schedule), tuple(peak_in_flight(schedule)))


def _no_schedule(puzzle: Puzzle, schedule: Sequence[Sequence[Action]]) -> list[Problem]:
    """What is of another form: other things than actions, another number of ranks, a stage that lies elsewhere."""
    if not isinstance(schedule, list | tuple) or not all(isinstance(actions, list | tuple) for actions in schedule):
        return [Problem(ProblemKind.NO_LISTS)]
    if len(schedule) != puzzle.ranks:
        return [Problem(ProblemKind.NUMBER_OF_LISTS, number=len(schedule), expected=puzzle.ranks)]
    for rank, actions in enumerate(schedule):
        for thing in actions:
            if type(thing) is not Action or thing.kind not in COMPUTATIONS + MESSAGES:
                return [Problem(ProblemKind.NOT_AN_ACTION, rank, thing)]
            if thing.stage != rank:
                return [Problem(ProblemKind.STAGE_ELSEWHERE, rank, thing)]
            if thing.micro_batch not in range(puzzle.micro_batches):
                return [Problem(ProblemKind.NO_SUCH_MICRO_BATCH, rank, thing, expected=puzzle.micro_batches - 1)]
    return []


@dataclass(frozen=True)
class Known:
    """The best schedule that the course has found, by `workshop.best_schedules`.

    Attributes:
        schedule: computations only.
        seconds, idle_share: of its simulation.
    """

    schedule: Schedule
    seconds: float
    idle_share: float


def best_known(puzzle: Puzzle) -> Known | None:
    """The best schedule that is known for one of the shared puzzles; None for any other."""
    kept = BEST_KNOWN.get(puzzle.name)
    if kept is None or PUZZLES.get(puzzle.name) != puzzle:
        return None
    schedule = parse_schedule(kept)
    timing = puzzle.simulate(schedule)
    return Known(schedule, round(timing.seconds, 9), timing.idle_share)  # rounded: a proof takes it as a fraction


def random_puzzle(seed: int, ranks: int | None = None, micro_batches: int | None = None) -> Puzzle:
    """A puzzle of 3 to 5 ranks from a seed. The last stages are the slowest, so that 1F1B leaves something to gain.

    Where the first stage is the slowest, it works without a pause in 1F1B already.
    """
    draw = random.Random(seed)
    ranks = ranks or draw.randint(3, 5)
    micro_batches = micro_batches or draw.randint(ranks, 2 * ranks + 2)

    def times(least: float, most: float) -> tuple[float, ...]:
        return tuple(round(draw.uniform(least, most) * (0.8 + 0.4 * stage / ranks), 2) for stage in range(ranks))

    return Puzzle(
        forward=times(0.8, 1.2),
        input_gradient=times(0.8, 1.3),
        weight_gradient=times(0.6, 1.1),
        latency=round(draw.uniform(0.0, 0.3), 2),
        message=round(draw.uniform(0.0, 0.2), 2),
        memory=tuple(min(ranks - rank, micro_batches) + draw.randint(0, 2) for rank in range(ranks)),
        micro_batches=micro_batches,
    )


PUZZLES = {
    puzzle.name: puzzle
    for puzzle in (
        Puzzle((1.0,) * 4, (1.0,) * 4, (1.0,) * 4, 0.0, 0.0, (4, 4, 4, 4), 8, "even"),
        Puzzle((1.1, 0.8, 1.2, 0.8), (1.3, 1.5, 1.5, 0.8), (1.1, 0.7, 1.2, 0.9), 0.2, 0.1, (4, 3, 4, 2), 8, "uneven"),
        Puzzle(
            (0.8, 0.7, 0.8, 1.0), (1.1, 1.2, 1.3, 0.8), (0.8, 0.9, 0.8, 0.7), 0.8, 0.3, (6, 5, 2, 2), 8, "far apart"
        ),
        Puzzle(
            forward=(1.0, 1.3, 0.8, 0.9, 1.3),
            input_gradient=(0.8, 1.4, 1.3, 1.0, 0.9),
            weight_gradient=(1.1, 1.1, 0.7, 0.9, 0.9),
            latency=0.1,
            message=0.1,
            memory=(5, 4, 3, 2, 1),
            micro_batches=8,
            name="tight",
        ),
    )
}
"""The puzzles of a class, by name: equal stages; unequal ones; a slow link; no more memory than 1F1B needs."""

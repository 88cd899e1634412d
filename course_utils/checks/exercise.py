"""What an exercise is made of: the cases it runs, what each costs, and what is said of it.

Everything here is plain data and knows nothing of notebooks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.finding import Finding
from course_utils.checks.sample_answers import Written, written_in
from course_utils.ranks.run import Attempt, Run
from course_utils.words import count

if TYPE_CHECKING:
    from course_utils.draw.block_frames import BlockFrames


class _NoResult:
    """The type of `NO_RESULT`."""

    def __repr__(self) -> str:
        return "NO_RESULT"


NO_RESULT: Any = _NoResult()
"""Stands in `Outcome.results` for a rank that did not return: it raised, hung or ended."""


@dataclass(frozen=True)
class Cost:
    """Upper bounds on what a case may cost; `collectives` is an exact number. None: not looked at.

    Attributes:
        rounds: rounds in which each rank sends one message and receives one.
        messages: messages between two ranks, of all ranks together.
        bytes_per_rank: payload bytes that the busiest rank sends.
        collectives: collective calls on rank 0.
    """

    rounds: int | None = None
    messages: int | None = None
    bytes_per_rank: float | None = None
    collectives: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What one case gave.

    Attributes:
        case: the case that ran.
        attempt: what `Ranks.attempt` handed back: one reply per rank, and `trouble`.
        results: what each rank returned, in rank order; `NO_RESULT` where a rank did not return.
        arguments: each rank's arguments after the call, to see what was changed in place.
        run: rounds, messages, bytes and events; None where a rank did not return.
        finding: what the check found wrong; None while all is well.
    """

    case: "Case"
    attempt: Attempt
    results: list[Any]
    arguments: list[tuple]
    run: Run | None
    finding: Finding | None = None

    @property
    def world_size(self) -> int:
        """The number of ranks that took part."""
        return len(self.case.arguments)


@dataclass(frozen=True)
class Case:
    """One call of the learner's function on every rank, and what must come of it.

    Attributes:
        label: what is special in it, in words: "3 ranks, 7 float32 numbers".
        arguments: one tuple per rank; their number is the number of ranks that take part.
        expected: what each rank must return; `...` for a rank that may return anything. None: not looked at.
        expected_arguments: per rank, what the argument at an index must be after the call.
        may_change: which arguments the function may change beside those; all others stay the caller's.
        with_comm: whether the function's first argument is the communicator.
        backend: "gloo" for a function of torch.distributed (without communicator).
        cost: what it may cost; None: not looked at.
        tolerance: relative to the largest expected number; None: what the dtype allows, and exact for integers.
        judge: an extra test; returns what is wrong, or None: see `finding.own`.
        harness: called as harness(function, *what the function would get) in place of the function itself.
        before: per rank, the calls of the learner's function that come before this one, each with a harness of its own
            and its arguments. Only their messages are seen in the outcome.
        timed: whether it measures time, which virtual ranks cannot say.
        key: what is special in it, for programs: "float32". Several cases may have one key; it is never shown, and
            stays when the label is worded better.
        parts: what sentences call the entries of a result that is a tuple or a list, as noun phrases: ("the gradient
            of a", "the gradient of b"). Without names they speak of `result[0]`.
        calls: for a harness that returns a list of what several calls returned: what sentences say of each call, as in
            "your function returned 0.5 for staleness 2": ("for staleness 1", "for staleness 2").
    """

    label: str
    arguments: Sequence[tuple]
    expected: Sequence[Any] | None = None
    expected_arguments: Sequence[Mapping[int, Any]] | None = None
    may_change: Sequence[int] = ()
    with_comm: bool = True
    backend: str | None = None
    cost: Cost | None = None
    tolerance: float | None = None
    judge: Callable[[Outcome], Finding | None] | None = None
    harness: Callable | None = None
    before: Sequence[Sequence[tuple[Callable, tuple]]] = ()
    timed: bool = False
    key: str = ""
    parts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    @property
    def without_ranks(self) -> bool:
        """Whether it is a call of a function that knows nothing of ranks."""
        return len(self.arguments) == 1 and not self.with_comm and self.backend is None

    @property
    def number_of_calls(self) -> int:
        """How many times it calls the learner's function, as far as that is known."""
        return 1 + len(self.before[0]) if self.before else 1


Recogniser = Callable[[Case, Outcome], bool]
"""A test whether an outcome shows a symptom."""


def _all_agree(outcome: Outcome) -> str:
    return f"{outcome.world_size} ranks agree" if outcome.world_size > 1 else "correct"


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One function that the learner writes, declared as `EXERCISE` in a module of its name, in its lesson's `checks`.

    `CONTRIBUTING.md` lists what else belongs to it.

    Attributes:
        library: where the course's own answer stands: a module of the lesson's room, in which it has the exercise's
            name, "ring"; or, elsewhere, "package.module:function".
        number: on the lesson's page, from 1.
        minutes: that it takes.
        difficulty: 1, 2 or 3.
        turn: what the learner is to do, in the line that stands in the body's place.
        cases: (random generator, largest world size) → the cases, plain ones first. Fresh numbers on every check.
        hints: first a question, then nearly the answer.
        symptoms: name → a test of an outcome, for lines "Recognised when …" in the file of what people write.
        needs_torch: the ranks import torch before the first case.
        title: a few words for the table of progress.
        praise: what the line of a right answer says, from the outcome of the last case.
        picture: draw the messages of the failing (or last) case below the line.
        drawing: what is drawn in their place, from the case's outcome; where it returns None, the messages are.
        wrong_blocks: for an answer that moves blocks of vectors: from what is where, and rank 0's arguments, which
            blocks (rank, block) of the last frame are wrong. Then a wrong answer is drawn as what is where.
        also_hidden: further functions, "module:function", that graded mode hides with the library's own answer: with
            them an answer would be a line or two.
        begins_with: "module:function", whose body stands in the learner's cell, to be made better.
        limit: seconds after which a case is ended in any event: many times what it takes, as machines may be busy.
        link: of the ranks that it is for, as `course.start` takes it; "" where any will do.
        shares_files: whether its ranks must see one another's files.
        budgets: whether it asks for a goal within budgets: whatever reaches it is right, so that no mutant of a right
            answer is wrong by itself.
        search_runs: runs of programs with known mistakes, at most, when the mistake of a wrong answer is looked for; 0
            where one run takes seconds, so that each of its questions is "Recognised …".
        name: the function's name: that of the module. This and what follows, the registry fills in.
        lesson: the lesson's stem, "04_messages".
        file: beside the module: what people write for it.
    """

    library: str
    number: int
    minutes: int
    difficulty: int
    turn: str
    cases: Callable[[np.random.Generator, int], Iterable[Case]]
    hints: tuple[str, str] = ("", "")
    symptoms: Mapping[str, Recogniser] = field(default_factory=dict)
    needs_torch: bool = False
    title: str = ""
    praise: Callable[[Outcome], str] = _all_agree
    picture: bool = True
    drawing: Callable[[Outcome], Any] | None = None
    wrong_blocks: "Callable[[BlockFrames, tuple], frozenset[tuple[int, int]]] | None" = None
    also_hidden: tuple[str, ...] = ()
    begins_with: str = ""
    limit: float = 30.0
    link: str = ""
    shares_files: bool = False
    budgets: bool = False
    search_runs: int = 600
    name: str = ""
    lesson: str = ""
    file: Path | None = None

    @property
    def written(self) -> Written:
        """What people write for it."""
        return written_in(self.file) if self.file else Written()

    def start(self, ranks: int) -> str:
        """The line that starts the ranks which the exercise is for."""
        return f'ranks = course.start({ranks}, link="{self.link}")' if self.link else f"ranks = course.start({ranks})"

    @property
    def effort(self) -> str:
        """How hard and how long: "difficulty ●●○ · 10 minutes"."""
        return f"difficulty {'●' * self.difficulty}{'○' * (3 - self.difficulty)} · {count(self.minutes, 'minute')}"

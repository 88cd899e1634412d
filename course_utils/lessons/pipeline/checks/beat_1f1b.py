"""The check of `beat_1f1b`: any schedule, for new puzzles, within their memory and faster than 1F1B."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.pipeline.checks import common
from course_utils.lessons.pipeline.checks.common import as_lines, form_problem, problem_found, schedule_of
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES, Judgement, Puzzle, best_known, judge, random_puzzle
from course_utils.words import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARED = "uneven"  # the puzzle of the class that a right answer is shown with
SLY = 295  # seed of a puzzle in which who forgets the link, or what lies before the first rank, is slower than 1F1B


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(puzzle: Puzzle, name: str = "") -> Case:
        kept = f"memory {list(puzzle.memory)}"
        label = f"{count(puzzle.ranks, 'rank')}, {count(puzzle.micro_batches, 'micro-batch')}, {kept}"
        label = f'the puzzle "{puzzle.name}"' if puzzle.name else name + label
        return Case(label, [(puzzle,)], with_comm=False, harness=as_lines, judge=_wrong)

    def seed() -> int:
        return int(rng.integers(2**31))

    yield case(random_puzzle(seed(), 3, 5))
    yield case(_as_much_as_1f1b(random_puzzle(seed(), 4, 8)))
    yield case(random_puzzle(seed(), 2, 3))
    yield case(random_puzzle(seed(), 5, 4))
    yield case(random_puzzle(SLY))
    for _ in range(3):
        yield case(random_puzzle(seed()))
    yield case(PUZZLES[SHARED])


def _as_much_as_1f1b(puzzle: Puzzle) -> Puzzle:
    """The same with no more memory than 1F1B needs."""
    memory = tuple(min(puzzle.ranks - rank, puzzle.micro_batches) for rank in range(puzzle.ranks))
    return Puzzle(
        puzzle.forward,
        puzzle.input_gradient,
        puzzle.weight_gradient,
        puzzle.latency,
        puzzle.message,
        memory,
        puzzle.micro_batches,
    )


def judged(outcome: Outcome) -> Judgement:
    """What the puzzle's own judge says of the schedule that came back."""
    return judge(outcome.case.arguments[0][0], schedule_of(outcome.results[0]))


def _wrong(outcome: Outcome) -> Finding | None:
    wrong = form_problem(outcome.results[0], outcome.case.arguments[0][0].ranks)
    if wrong:
        return wrong
    found = judged(outcome)
    if not found.valid:
        return problem_found(found.problems[0])
    if found.beats_1f1b:
        return None
    equal = abs(found.seconds - found.plain.seconds) < 1e-6
    return own(
        "no-faster" if equal else "slower",
        "the schedule takes {got:.2f} s and is idle {idle:.1%} of the time, "
        f"which is {'no faster' if equal else 'slower'} than 1F1B with {{expected:.2f}} s and {{plain_idle:.1%}}",
        got=found.seconds,
        idle=found.idle_share,
        expected=found.plain.seconds,
        plain_idle=found.plain.idle_share,
    )


def _praise(outcome: Outcome) -> str:
    found = judged(outcome)
    known = best_known(found.puzzle)
    text = (
        f"faster than 1F1B in every puzzle; in the last one it takes {found.seconds:.2f} s and is idle "
        f"{found.idle_share:.1%} of the time, and 1F1B takes {found.plain.seconds:.2f} s and is idle "
        f"{found.plain.idle_share:.1%}"
    )
    if known is None:
        return text
    if found.seconds < known.seconds - 1e-6:
        return f"{text}. The best schedule that we knew takes {known.seconds:.2f} s, so please tell us about yours"
    return f"{text}; the best known takes {known.seconds:.2f} s and is idle {known.idle_share:.1%}"


def _broken_off(case: Case, outcome: Outcome) -> bool:
    """Whether the function was stopped before it returned."""
    return any(reply.kind == "interrupted" for reply in outcome.attempt.replies)


def _drawing(outcome: Outcome) -> "Figure | None":
    """Draw 1F1B and the learner's schedule, even if that keeps too much or is too slow."""
    from course_utils.lessons.pipeline import pictures

    puzzle, returned = outcome.case.arguments[0][0], outcome.results[0]
    if form_problem(returned, puzzle.ranks) or sum(map(len, returned)) > common.MOST_DRAWN:
        return None
    mine, plain = puzzle.simulate(schedule_of(returned)), puzzle.one_f_one_b()
    title = f"Your schedule takes {mine.seconds:.1f} s, and 1F1B takes {plain.seconds:.1f} s"
    known = best_known(puzzle)
    title += f"; the best known takes {known.seconds:.1f} s" if known else ""
    valid = judged(outcome).valid
    under = f"Simulated; {outcome.case.label}" + ("" if valid else "; your schedule can't be run as it is")
    return pictures.pipelines({"1F1B": plain, "your schedule": mine}, title, under, in_seconds=True)


EXERCISE = Exercise(
    library="puzzle.beat_1f1b",
    number=5,
    minutes=15,
    difficulty=3,
    turn="return any schedule that fits into memory and is done before 1F1B",
    title="a puzzle: who beats 1F1B?",
    cases=_cases,
    hints=(
        "Look at the picture of 1F1B. When does a rank wait, and for which other rank? One half of a backward pass can "
        "be done at any later time, for example when a rank has nothing else to do. Which half is the other rank "
        "waiting for?",
        "Begin with 1F1B and replace each B by I and W, so that gradients leave earlier. Then put W off for as long as "
        "the rank's memory allows. Or build the schedule along a simulated clock, where the next action is always the "
        "one that can begin first, with I before F and F before W. Or move actions at random, and keep a change if "
        "`judge` finds the schedule valid and no slower.",
    ),
    symptoms={"there is one list for all ranks": common.one_list, "it was broken off": _broken_off},
    praise=_praise,
    drawing=_drawing,
    search_runs=0,
)

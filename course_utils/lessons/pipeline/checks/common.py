"""What the checks of lesson 10 share: a learner's schedule as plain texts, what is wrong with it, and its picture."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import COMPUTATIONS, MESSAGES, Action, parse_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.validate import problems
from course_utils.words import count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.lessons.pipeline.actions import Schedule
    from course_utils.lessons.pipeline.timing import Timing

Lines = list[list[str]]
"""For each rank its actions, as `2F0`."""
NO_LISTS, NO_ACTION = "a list of lists is expected, one for each rank", "which is not an Action"
FLAT = "a list of actions"
BELOW_ZERO = "and stages and micro-batches are counted from 0"
MOST_ACTIONS = 10_000
MOST_DRAWN = 400


def as_lines(function: Callable, *given: Any) -> Lines | str:
    """Runs on a rank: what the function returned, as texts; as one text where it is something else.

    What is not an Action becomes a text that begins with "?". A grader lets in no other objects than plain ones.
    """
    made = function(*given)

    def text(thing: Any) -> str:
        if type(thing) is not Action:
            return f"?{_shown(thing)}"
        numbers = all(isinstance(one, int | np.integer) for one in (thing.stage, thing.micro_batch))
        sound = isinstance(thing.kind, str) and thing.kind in COMPUTATIONS + MESSAGES and numbers
        return f"{int(thing.stage)}{thing.kind}{int(thing.micro_batch)}" if sound else f"?{_shown(thing)}"

    if made is None:
        return "nothing"
    if type(made) not in (list, tuple):
        return type(made).__name__
    if made and all(type(actions) is str for actions in made):
        return "a list of strings"
    others = {type(actions).__name__ for actions in made if type(actions) not in (list, tuple)}
    if others:
        return FLAT if Action.__name__ in others else f"a list with a {min(others)} in the place of a list"
    if sum(map(len, made)) > MOST_ACTIONS:
        return f"a schedule of more than {MOST_ACTIONS:,} actions"
    return [[text(thing) for thing in actions] for actions in made]


def _shown(thing: Any) -> str:
    try:
        return repr(thing)[:60]
    except Exception:  # a learner's object may raise
        return type(thing).__name__


def form_problem(returned: Any, ranks: int) -> str | None:
    """What is wrong with the form of what `as_lines` handed back; None where every rank has a list of actions."""
    if type(returned) is str:
        return f"the function returned {returned}; {NO_LISTS}"
    if len(returned) != ranks:
        return f"the schedule has {count(len(returned), 'list')} for {count(ranks, 'rank')}"
    for rank, actions in enumerate(returned):
        for place, text in enumerate(actions):
            if text.startswith("?"):
                return f"rank {rank} has {text[1:]} at place {place}, {NO_ACTION}"
            if "-" in text:
                return f"rank {rank} has {text} at place {place}, {BELOW_ZERO}"
    return None


def schedule_of(returned: Lines) -> "Schedule":
    """The schedule itself again."""
    return parse_schedule(" ".join(actions) for actions in returned)


def elsewhere(returned: Lines, wanted: Lines) -> str | None:
    """The first place at which a schedule is another one than was asked for."""
    for rank, (actions, expected) in enumerate(zip(returned, wanted, strict=True)):
        for place, (got, right) in enumerate(zip(actions, expected, strict=False)):
            if got != right:
                return f"rank {rank} does {got} at place {place}, expected {right}"
        if len(actions) != len(expected):
            return f"rank {rank} has {count(len(actions), 'action')}, expected {len(expected)}"
    return None


Wanted = Callable[[int, int], Lines]
"""(ranks, micro-batches) → the schedule that was asked for."""


def wrong_schedule(wanted: Wanted) -> Callable[[Outcome], str | None]:
    """What is wrong: its form, that it cannot be run, or that it is another one than was asked for."""

    def judge(outcome: Outcome) -> str | None:
        returned, (ranks, micro_batches) = outcome.results[0], outcome.case.arguments[0]
        wrong = form_problem(returned, ranks)
        if wrong:
            return wrong
        found = problems(schedule_of(returned), ranks, micro_batches)
        return found[0] if found else elsewhere(returned, wanted(ranks, micro_batches))

    return judge


def schedule_cases(wanted: Wanted, sizes: Sequence[tuple[int, int]]) -> Iterator[Case]:
    """A case for each (ranks, micro-batches)."""
    for ranks, micro_batches in sizes:
        label = f"{count(ranks, 'rank')}, {count(micro_batches, 'micro-batch')}"
        label += ": fewer micro-batches than ranks" if micro_batches < ranks else ""
        given = [(ranks, micro_batches)]
        yield Case(label, given, with_comm=False, harness=as_lines, judge=wrong_schedule(wanted))


def drawing_of(name: str, wanted: Wanted) -> Callable[[Outcome], "Figure | None"]:
    """A picture of the learner's schedule, as the simulator times it; with the right one below where it is wrong."""

    def drawing(outcome: Outcome) -> "Figure | None":
        from course_utils.lessons.pipeline import pictures

        returned, (ranks, micro_batches) = outcome.results[0], outcome.case.arguments[0]
        if form_problem(returned, ranks) or sum(map(len, returned)) > MOST_DRAWN:
            return None
        mine = simulated(returned)
        if mine is None:
            return None
        timings, title = {"your schedule": mine}, f"Your schedule is idle {percent(mine.idle_share)} of the time"
        if outcome.wrong:
            timings[name] = simulated(wanted(ranks, micro_batches))
            title += f", {name} {percent(timings[name].idle_share)}"
            if abs(mine.idle_share - timings[name].idle_share) < 1e-9:
                title = f"As idle as {name}, {percent(mine.idle_share)} of the time, but another schedule"
        given = f"{count(ranks, 'rank')}, {count(micro_batches, 'micro-batch')}"
        return pictures.pipelines(
            timings, title, f"simulated, a backward pass twice as long as a forward pass; {given}"
        )

    return drawing


def simulated(lines: Lines) -> "Timing | None":
    """When everything happens; None where it cannot be run."""
    try:
        return simulate_schedule(schedule_of(lines))
    except CourseError:
        return None


def one_list(case: Case, outcome: Outcome) -> bool:
    """Whether one list stands in the place of one for each rank, or each list holds everybody's actions."""
    returned = outcome.results[0]
    if type(returned) is str:
        return returned == FLAT
    return len(returned) > 1 and len(returned[0]) > 0 and all(own == returned[0] for own in returned)


def other_stage(case: Case, outcome: Outcome) -> bool:
    """Whether a rank's list names another stage than its own."""
    if type(outcome.results[0]) is str:
        return False
    return any(not text.startswith(f"{rank}") for rank, own in enumerate(outcome.results[0]) for text in own)


def halves(case: Case, outcome: Outcome) -> bool:
    """Whether the backward pass is written as halves, or only as one of them."""
    return any("I" in text or "W" in text for actions in outcome.results[0] for text in actions)


SYMPTOMS = {
    "there is one list for all ranks": one_list,
    "a rank has another stage than its own": other_stage,
    "a backward pass is in halves": halves,
}

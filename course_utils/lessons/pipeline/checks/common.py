"""What the checks of lesson 10 share: a learner's schedule as plain texts, what is wrong with it, and its picture."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import COMPUTATIONS, MESSAGES, Action, parse, parse_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.validate import Problem, ProblemKind, problems
from course_utils.words import count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.lessons.pipeline.actions import Schedule
    from course_utils.lessons.pipeline.timing import Timing

Lines = list[list[str]]
"""For each rank its actions, as `2F0`."""
Other = dict[str, str]
"""What was returned instead of a schedule or an action: the key of what is wrong with it, and itself in words."""
ONE_LIST, BELOW_ZERO = "one-list", "below-zero"
MOST_ACTIONS = 10_000
MOST_DRAWN = 400


def as_lines(function: Callable, *given: Any) -> list[list[str | Other]] | Other:
    """Run the function on a rank, and return its schedule as texts. A grader lets in no other objects than plain ones.

    What is not an action, or not a schedule, becomes an `Other`.
    """
    made = function(*given)
    if made is None:
        return _other("returned-nothing", "nothing")
    if type(made) not in (list, tuple):
        return _other("no-lists", type(made).__name__)
    if made and all(type(actions) is str for actions in made):
        return _other("list-of-strings", "a list of strings")
    others = {type(actions).__name__ for actions in made if type(actions) not in (list, tuple)}
    if Action.__name__ in others:
        return _other(ONE_LIST, "a list of actions")
    if others:
        return _other("no-lists", f"a list that contains a {min(others)} instead of a list")
    if sum(map(len, made)) > MOST_ACTIONS:
        return _other("too-many-actions", f"a schedule of more than {MOST_ACTIONS:,} actions")
    return [[_text_of(thing) for thing in actions] for actions in made]


def after_other_sizes(function: Callable, ranks: int, micro_batches: int) -> list[list[str | Other]] | Other:
    """The same of a call after others, with another number of ranks, of micro-batches, and of both."""
    for earlier in ((ranks + 1, micro_batches + 2), (ranks, micro_batches + 2), (ranks + 1, micro_batches)):
        function(*earlier)
    return as_lines(function, ranks, micro_batches)


def _other(key: str, shown: str) -> Other:
    return {"key": key, "shown": shown}


def _text_of(thing: Any) -> str | Other:
    if type(thing) is not Action or not isinstance(thing.kind, str) or thing.kind not in COMPUTATIONS + MESSAGES:
        return _other(ProblemKind.NOT_AN_ACTION.value, _shown(thing))
    if not all(isinstance(number, int | np.integer) for number in (thing.stage, thing.micro_batch)):
        return _other(ProblemKind.NOT_AN_ACTION.value, _shown(thing))
    text = f"{int(thing.stage)}{thing.kind}{int(thing.micro_batch)}"
    return text if min(thing.stage, thing.micro_batch) >= 0 else _other(BELOW_ZERO, text)


def _shown(thing: Any) -> str:
    try:
        return repr(thing)[:60]
    except Exception:  # a learner's object may raise
        return type(thing).__name__


def form_problem(returned: Any, ranks: int) -> Finding | None:
    """Find what is wrong with the form of what `as_lines` handed back; None where every rank has a list of actions."""
    if type(returned) is dict:
        words = "your function returned {shown}; a list of lists is expected, one for each rank"
        return own(returned["key"], words, shown=returned["shown"])
    if len(returned) != ranks:
        words = "your schedule has {lists}, and there are {ranks}"
        sizes = {"lists": count(len(returned), "list"), "ranks": count(ranks, "rank")}
        return own(ProblemKind.NUMBER_OF_LISTS.value, words, got=len(returned), expected=ranks, **sizes)
    for rank, actions in enumerate(returned):
        for index, action in enumerate(actions):
            if type(action) is dict:
                below = action["key"] == BELOW_ZERO
                why = "but stages and micro-batches are counted from 0" if below else "which isn't an Action"
                words = f"entry {{index}} of rank {{rank}}'s list is {{shown}}, {why}"
                return own(action["key"], words, rank=rank, shown=action["shown"], index=index)
    return None


def problem_found(problem: Problem) -> Finding:
    """The finding that a schedule has this problem."""
    return own(problem.kind.value, "{problem}", rank=problem.rank, problem=problem)


def schedule_of(returned: Lines) -> "Schedule":
    """The schedule itself again."""
    return parse_schedule(" ".join(actions) for actions in returned)


def elsewhere(returned: Lines, wanted: Lines) -> Finding | None:
    """Find the first index at which a schedule differs from the one that was asked for."""
    for rank, (actions, expected) in enumerate(zip(returned, wanted, strict=True)):
        for index, (got, right) in enumerate(zip(actions, expected, strict=False)):
            if got != right:
                key, words = (
                    "another-action",
                    "entry {index} of rank {rank}'s list is {got}, and {expected} is expected",
                )
                key = key if parse(got).computes else "message"
                return own(key, words, rank=rank, got=got, expected=right, index=index)
        if len(actions) != len(expected):
            numbers = {"got": len(actions), "expected": len(expected), "actions": count(len(actions), "action")}
            words = "rank {rank}'s list has {actions}, and {expected} are expected"
            return own("number-of-actions", words, rank=rank, **numbers)
    return None


Wanted = Callable[[int, int], Lines]
"""(ranks, micro-batches) → the schedule that was asked for."""


def wrong_schedule(wanted: Wanted) -> Callable[[Outcome], Finding | None]:
    """Make a judge of a schedule's form, of whether it can be run, and of whether it is what was asked for."""

    def judge(outcome: Outcome) -> Finding | None:
        returned, (ranks, micro_batches) = outcome.results[0], outcome.case.arguments[0]
        wrong = form_problem(returned, ranks)
        if wrong:
            return wrong
        found = problems(schedule_of(returned), ranks, micro_batches)
        return problem_found(found[0]) if found else elsewhere(returned, wanted(ranks, micro_batches))

    return judge


def schedule_cases(wanted: Wanted, sizes: Sequence[tuple[int, int]]) -> Iterator[Case]:
    """A case for each (ranks, micro-batches)."""
    for ranks, micro_batches in sizes:
        label = f"{count(ranks, 'rank')}, {count(micro_batches, 'micro-batch')}"
        label += ": fewer micro-batches than ranks" if micro_batches < ranks else ""
        key = "fewer-micro-batches-than-ranks" if micro_batches < ranks else ""
        given = [(ranks, micro_batches)]
        yield Case(label, given, with_comm=False, harness=as_lines, judge=wrong_schedule(wanted), key=key)
        if (ranks, micro_batches) == sizes[1]:
            more = {"harness": after_other_sizes, "judge": wrong_schedule(wanted), "key": AFTER_ANOTHER_CALL}
            yield Case(f"{label}, after other calls", given, with_comm=False, **more)


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
        if outcome.finding:
            timings[name] = simulated(wanted(ranks, micro_batches))
            title += f", and {name} {percent(timings[name].idle_share)}"
            if abs(mine.idle_share - timings[name].idle_share) < 1e-9:
                title = f"As idle as {name}, {percent(mine.idle_share)} of the time, but a different schedule"
        given = f"{count(ranks, 'rank')}, {count(micro_batches, 'micro-batch')}"
        return pictures.pipelines(
            timings, title, f"Simulated, with a backward pass twice as long as a forward pass; {given}"
        )

    return drawing


def simulated(lines: Lines) -> "Timing | None":
    """When everything happens; None where it cannot be run."""
    try:
        return simulate_schedule(schedule_of(lines))
    except CourseError:
        return None


def one_list(case: Case, outcome: Outcome) -> bool:
    """Whether there is one list instead of one for each rank, or each list holds the actions of all ranks."""
    returned = outcome.results[0]
    if type(returned) is dict:
        return returned["key"] == ONE_LIST
    return len(returned) > 1 and len(returned[0]) > 0 and all(own == returned[0] for own in returned)


def other_stage(case: Case, outcome: Outcome) -> bool:
    """Whether a rank's list names another stage than its own."""
    schedule = schedule_of(outcome.results[0])
    return any(action.stage != rank for rank, actions in enumerate(schedule) for action in actions)


def halves(case: Case, outcome: Outcome) -> bool:
    """Whether the backward pass is written as halves, or only as one of them."""
    return any("I" in text or "W" in text for actions in outcome.results[0] for text in actions)


SYMPTOMS = {
    "there is one list for all ranks": one_list,
    "a rank has another stage than its own": other_stage,
    "a backward pass is in halves": halves,
}

"""The check of `simulate`: tasks of drawn steps, and of devices and orders that no step has, each timed by hand."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, says
from course_utils.lessons.strategy_search.checks import LESSON
from course_utils.lessons.strategy_search.checks.common import FORGOT, NOTHING, drawn_strategy, shown
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.task_graph import Task, task_graph
from course_utils.words import count, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_SPANS = "a list with a (begin, end) for each task is expected"
NOT_WHOLE = "whole nanoseconds are expected"
BEGINS, ENDS = "begins at", "ends at"
MOST_DRAWN = 150


def as_pairs(function: Callable, tasks: list[Task]) -> list[list[Any]] | str:
    """Runs on a rank: begin and end of each task as plain numbers; as a text where it is something else."""
    before = list(tasks)
    spans = function(tasks)
    if tasks != before:
        return "the list of tasks was changed"
    if spans is None:
        return f"the function {NOTHING}; {NO_SPANS}"
    if isinstance(spans, dict) or not hasattr(spans, "__iter__"):
        return f"the function returned {shown(spans)}; {NO_SPANS}"
    found = []
    for place, span in enumerate(spans):
        if not isinstance(span, list | tuple | np.ndarray) or len(span) != 2:
            return f"the function returned {shown(span)} for task {place}; {NO_SPANS}"
        if not all(isinstance(one, int | np.integer) for one in span):
            return f"the function returned {shown(span)} for task {place}; {NOT_WHOLE}"
        found.append([int(one) for one in span])
    return found


def by_hand(tasks: Sequence[Task], own: bool = True, after: bool = True, most: Callable = max) -> list[list[int]]:
    """When each task begins and ends; or what comes out where a device's own order, or `after`, is not looked at."""
    spans: list[list[int]] = []
    for place, task in enumerate(tasks):
        waits = [spans[one][1] for one in task.after] if after else []
        if own:
            waits += [spans[one][1] for one in range(place) if tasks[one].device == task.device]
        begin = most(waits) if waits else 0
        spans.append([begin, begin + task.nanoseconds])
    return spans


def _wrong(outcome: Outcome) -> str | None:
    tasks, found = outcome.case.arguments[0][0], outcome.results[0]
    if isinstance(found, str):
        return found
    if len(found) != len(tasks):
        return f"{count(len(found), 'pair')} for {count(len(tasks), 'task')}; {NO_SPANS}"
    for place, ((begin, end), wanted) in enumerate(zip(found, by_hand(tasks), strict=True)):
        said = f"task {place} ({tasks[place].name} on device {tasks[place].device})"
        if begin != wanted[0]:
            return f"{said} {BEGINS} {begin} ns, expected {wanted[0]}"
        if end != wanted[1]:
            return f"{said} {ENDS} {end} ns, expected {wanted[1]}"
    return None


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, tasks: list[Task]) -> Case:
        return Case(label, [(tasks,)], with_comm=False, harness=as_pairs, judge=_wrong)

    def times(number: int) -> list[int]:
        return [1000 * int(one) for one in rng.integers(5, 40, number)]

    a, b, c, d = times(4)
    meeting = _tasks((0, a, ()), (1, a + b, ()), (1, c, ()), (0, d, (0, 2)), (1, d, (0, 2)), (2, b, (1, 3)))
    yield case("3 devices that meet", meeting)
    a, b, c = times(3)
    yield case("one device", _tasks((0, a, ()), (0, b, ()), (0, c, (0,))))
    a, b, c = times(3)
    yield case("a device that begins late", _tasks((0, a, ()), (0, b, (0,)), (3, c, (1,)), (3, b, ()), (0, a, ())))
    for _ in range(4):
        yield case("tasks of any order", _drawn_tasks(rng, int(rng.integers(6, 30)), int(rng.integers(2, 5))))
    yield case("no tasks", [])
    for devices in (2, 3, 4):
        graph = random_graph(rng, int(rng.integers(4, 8)))
        strategy = drawn_strategy(rng, graph, devices)
        step = task_graph(graph, strategy, random_costs(rng, graph))
        yield case(f"a step of {count(len(graph), 'operator')} on {devices} devices", step)


def _tasks(*rows: tuple[int, int, tuple[int, ...]]) -> list[Task]:
    """(device, nanoseconds, after) of each."""
    return [Task(f"t{place}", *row) for place, row in enumerate(rows)]


def _drawn_tasks(rng: np.random.Generator, number: int, devices: int) -> list[Task]:
    """Tasks after some of those before them, in any order, one of them twice; some take no time."""
    rows = []
    for place in range(number):
        after = tuple(int(one) for one in rng.integers(0, place, rng.integers(0, 4))) if place else ()
        rows.append((int(rng.integers(devices)), 1000 * int(rng.integers(0, 60)), after))
    return _tasks(*rows)


def _as(**without: Any) -> Recogniser:
    """A recogniser of what comes out where something is not looked at."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return outcome.results[0] == by_hand(case.arguments[0][0], **without)

    return recognises


def _one_after_the_other(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    ends = [0, *(end for _, end in found)]
    return len(found) > 2 and all(begin == before for (begin, _), before in zip(found, ends, strict=False))


def _begins_with_them(case: Case, outcome: Outcome) -> bool:
    """Whether the begin of what it is after was taken for its end."""
    spans: list[list[int]] = []
    free: dict[int, int] = {}
    for task in case.arguments[0][0]:
        begin = max([free.get(task.device, 0), *(spans[one][0] for one in task.after)])
        spans.append([begin, begin + task.nanoseconds])
        free[task.device] = begin + task.nanoseconds
    return outcome.results[0] == spans


def _only_work_counted(case: Case, outcome: Outcome) -> bool:
    """Whether a device is thought to be free when it has worked so long as its tasks take, without its waiting."""
    spans: list[list[int]] = []
    busy: dict[int, int] = {}
    for task in case.arguments[0][0]:
        begin = max([busy.get(task.device, 0), *(spans[one][1] for one in task.after)])
        spans.append([begin, begin + task.nanoseconds])
        busy[task.device] = busy.get(task.device, 0) + task.nanoseconds
    return outcome.results[0] == spans


def _durations(case: Case, outcome: Outcome) -> bool:
    """Whether the second number is how long a task takes."""
    return [end for _, end in outcome.results[0]] == [task.nanoseconds for task in case.arguments[0][0]]


def _too_early(case: Case, outcome: Outcome) -> bool:
    wanted = by_hand(case.arguments[0][0])
    return any(begin < right[0] for (begin, _), right in zip(outcome.results[0], wanted, strict=False))


def _praise(outcome: Outcome) -> str:
    tasks, found = outcome.case.arguments[0][0], outcome.results[0]
    devices = {task.device for task in tasks}
    end = max(end for _, end in found)
    busy = sum(task.nanoseconds for task in tasks) / (len(devices) * end)
    return (
        f"to the last nanosecond; the last step takes {seconds_text(end / 1e9)}, its devices are busy {busy:.0%} of it"
    )


def _drawing(outcome: Outcome) -> "Figure | None":
    """What the tasks take, as they should be simulated."""
    from course_utils.lessons.strategy_search import pictures

    tasks = outcome.case.arguments[0][0]
    if not 0 < len(tasks) <= MOST_DRAWN or max(task.nanoseconds for task in tasks) == 0:
        return None
    title = "So the tasks should be simulated" if outcome.wrong else "The step, as you simulate it"
    return pictures.task_timelines({outcome.case.label: tasks}, title)


SIMULATE = Exercise(
    name="simulate",
    library="course_utils.lessons.strategy_search.simulator.simulate:simulate",
    lesson=LESSON,
    place=2,
    minutes=10,
    difficulty=1,
    turn="begin every task as soon as its device is free and what it is after has ended",
    title="when every task begins and ends",
    cases=_cases,
    hints=(
        "Take the tasks in their order. For what has a task to wait on its own device, and for what elsewhere? When "
        "you come to it, which of these times are known already?",
        "Keep `free`, for each device when it has done its last task. A task begins at the maximum of "
        "`free.get(task.device, 0)` and the ends of all tasks in `task.after`; it ends `task.nanoseconds` later, and "
        "then its device is free again.",
    ),
    mistakes=(
        FORGOT,
        Mistake("What do you do with the list that you were given?", says("was changed")),
        Mistake("What is the maximum of nothing?", lambda case, outcome: raised(outcome, "empty")),
        Mistake("When is a device free that has done nothing yet?", lambda case, outcome: raised(outcome, "KeyError")),
        Mistake("Are the times still whole numbers?", says(NOT_WHOLE)),
        Mistake("Is it one pair for each task, in the order of the tasks?", says(NO_SPANS)),
        Mistake("Is the second number how long a task takes, or when it ends?", _durations),
        Mistake("Can two devices work at the same time?", _one_after_the_other),
        Mistake("Can a device do two tasks at the same time?", _as(own=False)),
        Mistake("Which tasks on other devices must have ended?", _as(after=False)),
        Mistake("For which of them does a task wait: the first that ends, or the last?", _as(most=min)),
        Mistake("Must what a task is after have begun, or ended?", _begins_with_them),
        Mistake("Where does the time go in which a device waits?", _only_work_counted),
        Mistake("For how many of those in `after` does the task wait?", _too_early),
    ),
    praise=_praise,
    drawing=_drawing,
)

"""The check of `simulate`: tasks of drawn steps, and of devices and orders that no step has, each timed by hand."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.strategy_search.checks.common import (
    RETURNED_NOTHING,
    drawn_strategy,
    form_finding,
    malformed,
    shown,
)
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.task_graph import Task, task_graph
from course_utils.words import count, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPECTED = "a list with a (begin, end) for each task is expected"
WORDS = {
    RETURNED_NOTHING: f"the function returned {{shown}}; {EXPECTED}",
    "no-spans": f"the function returned {{shown}}; {EXPECTED}",
    "no-span": f"the function returned {{shown}} for task {{task}}; {EXPECTED}",
    "not-whole": "the function returned {shown} for task {task}; whole nanoseconds are expected",
}
MOST_DRAWN = 150


def as_pairs(function: Callable, tasks: Sequence[Task]) -> list[list[Any]] | dict[str, Any]:
    """Runs on a rank: begin and end of each task, after a call with longer ones; `malformed` of anything else."""
    function([task._replace(nanoseconds=task.nanoseconds + 1000) for task in tasks])
    spans = function(tasks)
    if isinstance(spans, dict) or not hasattr(spans, "__iter__"):
        return malformed(RETURNED_NOTHING if spans is None else "no-spans", shown=shown(spans))
    found = []
    for index, span in enumerate(spans):
        if not isinstance(span, list | tuple | np.ndarray) or len(span) != 2:
            return malformed("no-span", shown=shown(span), task=index)
        if not all(isinstance(moment, int | np.integer) for moment in span):
            return malformed("not-whole", shown=shown(span), task=index)
        found.append([int(moment) for moment in span])
    return found


def by_hand(tasks: Sequence[Task]) -> list[list[int]]:
    """When each task begins and ends: after all before it on its device, and all that it is after."""
    spans: list[list[int]] = []
    for index, task in enumerate(tasks):
        own = [earlier for earlier in range(index) if tasks[earlier].device == task.device]
        begin = max((spans[earlier][1] for earlier in (*own, *task.after)), default=0)
        spans.append([begin, begin + task.nanoseconds])
    return spans


def _wrong(outcome: Outcome) -> Finding | None:
    tasks, found = outcome.case.arguments[0][0], outcome.results[0]
    if wrong := form_finding(found, WORDS):
        return wrong
    if len(found) != len(tasks):
        numbers = {"pairs": count(len(found), "pair"), "tasks": count(len(tasks), "task")}
        return own("number-of-spans", f"{{pairs}} for {{tasks}}; {EXPECTED}", **numbers)
    for number, (task, got, wanted) in enumerate(zip(tasks, found, by_hand(tasks), strict=True)):
        for verb, mine, right in zip(("begins", "ends"), got, wanted, strict=True):
            if mine != right:
                when = "early" if mine < right else "late"
                words = "task {task} ({name} on device {device}) {verb} at {got} ns, "
                values = {"task": number, "name": task.name, "device": task.device, "verb": verb}
                return own(
                    f"too-{when}", f"{words}too {when}; expected {{expected}}", got=mine, expected=right, **values
                )
    return None


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, tasks: Sequence[Task], key: str = "") -> Case:
        return Case(label, [(tasks,)], with_comm=False, harness=as_pairs, judge=_wrong, key=key)

    yield case("5 devices, of which one waits for others", _meeting(rng))
    a, b, c = _times(rng, 3)
    yield case("one device", _tasks((0, a, ()), (0, b, ()), (0, c, (0,))))
    a, b, c = _times(rng, 3)
    yield case("a device that begins late", _tasks((0, a, ()), (0, b, (0,)), (3, c, (1,)), (3, b, ()), (0, a, ())))
    for _ in range(4):
        yield case("tasks of any order", _drawn_tasks(rng, int(rng.integers(6, 30)), int(rng.integers(2, 5))))
    yield case("no tasks", [])
    many = _drawn_tasks(rng, 20, 3)
    yield case("devices with large numbers", tuple(task._replace(device=41 * task.device + 7) for task in many))
    years = [task._replace(nanoseconds=int(rng.integers(2**54, 2**55))) for task in _drawn_tasks(rng, 20, 3)]
    yield case("tasks that take months", years, "months")
    for devices in (2, 3, 4):
        graph = random_graph(rng, int(rng.integers(4, 8)))
        strategy = drawn_strategy(rng, graph, devices)
        step = task_graph(graph, strategy, random_costs(rng, graph))
        yield case(f"a step of {count(len(graph), 'operator')} on {devices} devices", step)


def _times(rng: np.random.Generator, number: int) -> list[int]:
    return [1000 * int(microseconds) for microseconds in rng.integers(5, 40, number)]


def _meeting(rng: np.random.Generator) -> list[Task]:
    """Tasks of which number 6 begins at another time for every way to overlook something."""
    a, b, c, d, e, f = np.cumsum(_times(rng, 6)).tolist()  # what ends first, to what ends last
    ahead = (0, b, ()), (1, c, ()), (1, f - c, ()), (2, a, ()), (3, d, ()), (4, e, ())
    return _tasks(*ahead, (0, b, (4, 3, 2, 5)), (1, a, (6, 0)), (2, b, (1,)), (3, d, ()), (2, c, (9,)))


def _tasks(*rows: tuple[int, int, tuple[int, ...]]) -> list[Task]:
    """(device, nanoseconds, after) of each."""
    return [Task(f"t{index}", *row) for index, row in enumerate(rows)]


def _drawn_tasks(rng: np.random.Generator, number: int, devices: int) -> list[Task]:
    """Tasks after some of those before them, in any order, one of them twice; some take no time."""
    rows = []
    for index in range(number):
        after = tuple(int(earlier) for earlier in rng.integers(0, index, rng.integers(0, 4))) if index else ()
        rows.append((int(rng.integers(devices)), 1000 * max(0, int(rng.integers(-20, 60))), after))
    return _tasks(*rows)


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
    title = "So the tasks should be simulated" if outcome.finding else "The step, as you simulate it"
    return pictures.task_timelines({outcome.case.label: tasks}, title)


EXERCISE = Exercise(
    library="simulator.simulate",
    number=2,
    minutes=10,
    difficulty=1,
    turn="begin every task as soon as its device is free and those before it have ended",
    title="when every task begins and ends",
    cases=_cases,
    hints=(
        "Go through the tasks in their order. What does a task wait for on its own device, and what on other devices? "
        "Which of these times do you know already when you reach it?",
        "Keep a dictionary `free` with the time at which each device has ended its tasks so far. A task begins at the "
        "maximum of `free.get(task.device, 0)` and the ends of all tasks in `task.after`. It ends `task.nanoseconds` "
        "later, and then its device is free again.",
    ),
    praise=_praise,
    drawing=_drawing,
)

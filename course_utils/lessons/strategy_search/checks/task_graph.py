"""The check of `task_graph`: which tasks there are, in which order on each device, and which waits for which.

First, every task has to wait for the same others, directly or through tasks between. Then its `after` must be the
latest tasks alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators
from course_utils.lessons.strategy_search.simulator.program_steps import (
    Costs,
    Step,
    compute,
    exchange,
    gradient_sums,
    output_sums,
)
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.task_graph import Task
from course_utils.words import count

NO_TASKS = "your function returned {shown}; a list of Task is expected"
WORDS = {
    RETURNED_NOTHING: NO_TASKS,
    "no-tasks": NO_TASKS,
    "no-task": "entry {number} of your list is {shown}; a Task is expected",
    "not-whole": "task {number} ({name}) takes {shown} ns; a whole number of nanoseconds is expected",
    "not-numbers": "in task {number} ({name}), `after` is {shown}; numbers of tasks are expected",
    "after-a-later-task": "task {number} ({name}) is after task {after}, which doesn't come before it in the list",
}
Row = list[Any]
"""A task: its name, device and nanoseconds, and the numbers of those that it is after."""


def as_rows(function: Callable, graph: OperatorGraph, strategy: Strategy, costs: Costs) -> list[Row] | dict[str, Any]:
    """Runs on a rank: the tasks as plain lists, after a call for a single device; `malformed` of anything else."""
    function(graph, [Config()] * len(strategy), costs)
    tasks = function(graph, strategy, costs)
    if not isinstance(tasks, list | tuple) or isinstance(tasks, Task):
        return malformed(RETURNED_NOTHING if tasks is None else "no-tasks", shown=shown(tasks))
    rows: list[Row] = []
    for index, task in enumerate(tasks):
        if not isinstance(task, Task):
            return malformed("no-task", number=index, shown=shown(task))
        after = list(task.after) if isinstance(task.after, list | tuple | set | frozenset) else [task.after]
        if not all(isinstance(earlier, int | np.integer) for earlier in after):
            return malformed("not-numbers", number=index, name=str(task.name), shown=shown(task.after))
        if not isinstance(task.nanoseconds, int | np.integer):
            return malformed("not-whole", number=index, name=str(task.name), shown=shown(task.nanoseconds))
        for earlier in after:
            if not 0 <= earlier < index:
                return malformed("after-a-later-task", number=index, name=str(task.name), after=int(earlier))
        rows.append(
            [str(task.name), int(task.device), int(task.nanoseconds), sorted(int(earlier) for earlier in after)]
        )
    return rows


def steps_by_hand(graph: OperatorGraph, strategy: Strategy, costs: Costs) -> list[tuple[str, Step]]:
    """All steps in their order, each with its name, written another way than in the library; some are empty."""
    pairs = list(zip(graph.operators, strategy, strict=True))
    forward: list[tuple[str, Step]] = []
    backward: list[tuple[str, Step]] = []  # from the last step to the first
    for operator, config in pairs:
        for source, spread in (pairs[number] for number in operator.inputs):
            ends = source, spread, operator, config, costs
            forward.append((f"{source.name} → {operator.name}", exchange(*ends, "forward")))
            backward.append((f"{operator.name} → {source.name}", exchange(*ends, "backward")))
        forward.append((operator.name, compute(operator, config, costs, "forward")))
        forward.append((f"{operator.name} sums", output_sums(operator, config, costs)))
        backward.append((f"{operator.name} gradients", gradient_sums(operator, config, costs)))
        backward.append((f"{operator.name} backward", compute(operator, config, costs, "backward")))
        backward.append((f"{operator.name} sums backward", output_sums(operator, config, costs)))
    return forward + backward[::-1]


def by_hand(steps: Iterable[tuple[str, Step]]) -> list[Row]:
    """The tasks of these steps: of each device that takes part, after the latest of those that it meets."""
    rows: list[Row] = []
    for name, step in steps:
        done = len(rows)
        for device, nanoseconds, partners in step:
            own = {
                member: [index for index in range(done) if rows[index][1] == member][-1:]
                for member in (device, *partners)
            }
            rows.append([name, device, nanoseconds, sorted(sum(own.values(), []))])
    return rows


def waits(rows: list[Row]) -> dict[tuple, set[tuple]]:
    """For each task, by name, device and how often it was there before, all that `after` makes it wait for."""
    keys: list[tuple] = []
    known: list[int] = []  # of each task, those it waits for as bits
    for name, device, _, after in rows:
        bits = 0
        for earlier in after:
            bits |= known[earlier] | 1 << earlier
        known.append(bits)
        keys.append((name, device, sum(key[:2] == (name, device) for key in keys)))
    return {
        key: {keys[index] for index in range(len(keys)) if bits >> index & 1}
        for key, bits in zip(keys, known, strict=True)
    }


def on_devices(rows: list[Row]) -> dict[int, list[Row]]:
    """The tasks of each device, in order."""
    found = defaultdict(list)
    for row in rows:
        found[row[1]].append(row)
    return found


def _wrong(outcome: Outcome) -> Finding | None:
    found, (graph, *_) = outcome.results[0], outcome.case.arguments[0]
    if wrong := form_finding(found, WORDS):
        return wrong
    steps = steps_by_hand(*outcome.case.arguments[0])
    wanted = by_hand(steps)
    sums = {f"{operator.name} gradients" for operator in graph.operators}
    there, right = on_devices(found), on_devices(wanted)
    known = {name for name, _ in steps}
    for name, device, *_ in found:
        if name not in known:
            words = 'device {device} has a task "{task}", but no task of this step is called that'
            return own("no-such-name", words, task=name, device=device)
    for device in sorted({*there, *right}):
        mine, names = [row[0] for row in there[device]], [row[0] for row in right[device]]
        missing = [name for name in dict.fromkeys(names) if mine.count(name) < names.count(name)]
        if missing:
            more = f", and {len(missing) - 1} more that are missing" if missing[1:] else ""
            key = "gradient-sums-missing" if missing[0] in sums else "task-missing"
            return own(
                key, 'device {device} should have a task "{task}"{more}', task=missing[0], device=device, more=more
            )
        for name in mine:
            if mine.count(name) > names.count(name):
                times = "" if mine.count(name) == 1 else f" {mine.count(name)} times"
                words = 'device {device} has a task "{task}"{times}, which doesn\'t belong there'
                return own("no-such-task", words, task=name, device=device, times=times)
        for got, row in zip(there[device], right[device], strict=True):
            if got[0] != row[0]:
                words = 'device {device} does "{got}", but its next task should be "{expected}"'
                return own("another-order", words, got=got[0], expected=row[0], device=device)
            if got[2] != row[2]:
                words = '"{task}" takes {got} ns on device {device}, and {expected} ns is expected'
                return own("nanoseconds", words, got=got[2], expected=row[2], task=got[0], device=device)
    return _other_waits(waits(found), waits(wanted)) or _other_numbers(found, wanted)


def _other_numbers(found: list[Row], wanted: list[Row]) -> Finding | None:
    """Find a task whose `after` are not the latest tasks alone, although it waits for the right ones."""
    mine, right = _direct(found), _direct(wanted)
    for key in right:
        if others := mine[key] - right[key]:
            name, device, _ = max(others)
            words = '"{task}" on device {device} is after "{other}" on device {elsewhere}, which isn\'t its latest task'
            return own("not-the-latest", words, task=key[0], device=key[1], other=name, elsewhere=device)
    return None


def _direct(rows: list[Row]) -> dict[tuple, set[tuple]]:
    """For each task, by name, device and how often it was there before, those in its `after`."""
    keys: list[tuple] = []
    for name, device, _, _ in rows:
        keys.append((name, device, sum(key[:2] == (name, device) for key in keys)))
    return {key: {keys[index] for index in after} for key, (*_, after) in zip(keys, rows, strict=True)}


def _other_waits(mine: dict[tuple, set[tuple]], right: dict[tuple, set[tuple]]) -> Finding | None:
    missing, needless = (
        [(key, other) for key in right for other in a[key] - b[key]] for a, b in ((right, mine), (mine, right))
    )
    for key in right:
        for found, kind, verb, why in (
            (missing, "wait-missing", "should wait for", ""),
            (needless, "needless-wait", "waits for", ", which isn't necessary"),
        ):
            others = [other for who, other in found if who == key]
            if others:
                name, device, _ = max(others)
                return own(
                    kind,
                    f'"{{task}}" on device {{device}} {verb} "{{other}}" on device {{elsewhere}}{why}; '
                    "in all, {missing} missing and {needless} unnecessary",
                    **{"task": key[0], "device": key[1], "other": name, "elsewhere": device},
                    missing=count(len(missing), "such wait") + (" is" if len(missing) == 1 else " are"),
                    needless=len(needless),
                )
    return None


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, graph: OperatorGraph, strategy: Strategy, costs: Costs | None = None, key: str = "") -> Case:
        given = graph, strategy, costs or random_costs(rng, graph)
        return Case(label, [given], with_comm=False, harness=as_rows, judge=_wrong, key=key)

    plain, skips = ((3, 1), (4, 2)), ((6, 2), (7, 3), (8, 4), (3, 4), (9, 3), (8, 2), (6, 5))
    for operators, devices in (*plain, *skips):
        graph = random_graph(rng, operators, (operators, devices) in skips)
        label = f"{count(operators, 'operator')} on {count(devices, 'device')}"
        yield case(label, graph, drawn_strategy(rng, graph, devices))
    graph = five_operators()
    yield case("a loss that takes no time", graph, drawn_strategy(rng, graph, 2), HandCosts(), "free-loss")
    graph = _with_everything(rng)
    strategy = drawn_strategy(rng, graph, 3)
    while not all(_has(strategy, graph)):
        strategy = drawn_strategy(rng, graph, 3)
    yield case("an operator with two inputs, and norms", graph, tuple(strategy))


def _with_everything(rng: np.random.Generator) -> OperatorGraph:
    """A graph in which some operator has two inputs, and some a batch norm."""
    while True:
        graph = random_graph(rng, 9)
        two = any(len(operator.inputs) == 2 for operator in graph.operators)
        if two and any(operator.averages for operator in graph.operators):
            return graph


def _has(strategy: Strategy, graph: OperatorGraph) -> Iterator[bool]:
    """Whether some norm, and some gradients, have to be summed."""
    for wanted in ("averages", "parameters"):
        yield any(
            getattr(operator, wanted) and config.parts[0] * config.parts[1] > 1
            for operator, config in zip(graph.operators, strategy, strict=True)
        )


EXERCISE = Exercise(
    library="simulator.task_graph",
    number=1,
    minutes=30,
    difficulty=3,
    turn="list every task of the step, and the tasks it has to wait for",
    title="everything that a step does",
    cases=_cases,
    hints=(
        "Take a network of two operators and write down all names in their order. Each call of `exchange`, `compute` "
        "and so on lets some devices work. Which task did each of them do last before this call? And whose tasks does "
        "a device have to wait for before it can send something?",
        "Keep a dictionary `last` with the number of the latest task of each device, and write a helper "
        "`add(name, step)`. It first makes a copy, `before = dict(last)`, because the tasks of one step don't wait for "
        "each other. Then it appends a Task for each `device, nanoseconds, partners` of the step. Its `after` are the "
        "numbers in `before` of the device and its partners. With this helper, a loop over the operators makes the "
        "forward pass, and a loop in reverse makes the backward pass.",
    ),
    praise=lambda outcome: (
        f"{count(len(outcome.results[0]), 'task')} in the last graph, each on its device, each after those it needs"
    ),
)

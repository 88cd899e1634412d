"""The execution simulator: when every task begins and ends, without running any of them."""

from collections.abc import Sequence
from typing import NamedTuple

from course_utils.lessons.strategy_search.simulator.task_graph import Task


class Span(NamedTuple):
    """When a task begins and ends, in nanoseconds from the beginning of the step."""

    begin: int
    end: int


def simulate(tasks: Sequence[Task]) -> list[Span]:
    """Calculate when each task begins and ends, in nanoseconds from the beginning of the step.

    It begins as soon as its device is free and all tasks in its `after` have ended.

    Args:
        tasks: in the order of the program. Each device does its own tasks in this order.

    Returns:
        A `Span(begin, end)`, or a plain pair, for each task, in the same order.
    """
    free: dict[int, int] = {}  # device → when it has done what came before
    spans: list[Span] = []
    for task in tasks:
        begin = max([free.get(task.device, 0), *(spans[earlier].end for earlier in task.after)])
        end = begin + task.nanoseconds
        spans.append(Span(begin, end))
        free[task.device] = end
    return spans


def makespan(tasks: Sequence[Task]) -> int:
    """When the last task ends, in nanoseconds."""
    return max((end for _, end in simulate(tasks)), default=0)

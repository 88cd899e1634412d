"""The best strategy of all, where there are few enough to simulate every one."""

from math import prod

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.simulator.program_steps import Costs
from course_utils.lessons.strategy_search.simulator.step_tables import Tables, Whole, make_tables

MOST = 2_000_000
"""Strategies that are simulated at most: some seconds."""
_TOGETHER = 4096


def optimum(graph: OperatorGraph, costs: Costs, devices: int) -> tuple[list[Config], int]:
    """The quickest strategy that fits into the devices' memory, and its makespan in nanoseconds.

    Raises:
        CourseError: there are too many strategies, or none fits.
    """
    return optimum_of(make_tables(graph, costs, devices))


def optimum_of(tables: Tables) -> tuple[list[Config], int]:
    """The same, of tables that are made already."""
    sizes = [len(own) for own in tables.choices]
    if prod(sizes) > MOST:
        raise CourseError(
            f"{prod(sizes):,} strategies are too many to try them all. Search with find_strategy instead."
        )
    best: tuple[int, Whole] | None = None
    for first in range(0, prod(sizes), _TOGETHER):
        numbers = np.arange(first, min(first + _TOGETHER, prod(sizes)))
        columns = np.stack(np.unravel_index(numbers, sizes))
        times = np.where(tables.excess(columns) == 0, tables.makespans(columns), np.iinfo(np.int64).max)
        least = int(times.argmin())
        if tables.excess(columns[:, [least]])[0] == 0 and (best is None or times[least] < best[0]):
            best = int(times[least]), columns[:, least]
    if best is None:
        raise CourseError("No strategy fits into the devices' memory. Take more devices, or a smaller batch.")
    return tables.strategy(best[1]), best[0]

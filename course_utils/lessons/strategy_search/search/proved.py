"""Walks and then a bound: the best strategy that is known, and how far the walks are from what is proved."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.search.certificate_check import check_certificate
from course_utils.lessons.strategy_search.search.known_ways import known_ways
from course_utils.lessons.strategy_search.search.lower_bound import Bound, bound_below
from course_utils.lessons.strategy_search.search.many_walks import ITERATIONS, Found, find_strategy
from course_utils.lessons.strategy_search.simulator.program_steps import Costs
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph


@dataclass(frozen=True)
class ProvedSearch:
    """What walks found, and what no strategy is quicker than.

    Attributes:
        graph, costs, devices: what was searched.
        bound: None where the search for it gave up.
        checked: seconds in which the bound's certificate was checked; None: it was not.
    """

    graph: OperatorGraph = field(repr=False)
    costs: Costs = field(repr=False)
    devices: int
    walks: Found
    bound: Bound | None
    checked: float | None = None

    @property
    def strategy(self) -> list[Config]:
        """The quickest that is known: the bound's, where the walks' is slower. Memory is left out then."""
        return (self.bound and self.bound.strategy) or self.walks.strategy

    @property
    def gap(self) -> float:
        """The share of its time that the walks' best could still save; 1 where nothing is proved."""
        return 1 - self.bound.nanoseconds / self.walks.nanoseconds if self.bound else 1.0

    def seconds(self) -> dict[str, float]:
        """Of a step, simulated: data parallel, Krizhevsky's way, and the walks' best."""
        ways = known_ways(self.graph, self.devices)
        known = {name: ways[name] for name in ("data parallel", "fc by parameter")}
        times = {name: makespan(task_graph(self.graph, strategy, self.costs)) / 1e9 for name, strategy in known.items()}
        return times | {"the walks' best": self.walks.nanoseconds / 1e9}


def search_and_prove(
    graph: OperatorGraph, costs: Costs, devices: int, iterations: int = ITERATIONS, check: bool = False
) -> ProvedSearch:
    """Search by walks, then for a bound.

    Args:
        graph: each operator reads the one before.
        iterations: proposals of the walks.
        check: whether to check the bound's certificate, too.

    Raises:
        CourseError: an operator reads others than the one before; nothing fits into memory; a wrong certificate.
    """
    walks = find_strategy(graph, costs, devices, iterations=iterations)
    bound = bound_below(make_tables(graph, costs, devices), walks.nanoseconds)
    began = time.perf_counter()
    if check and bound:
        check_certificate(graph, costs, devices, bound.certificate)
        return ProvedSearch(graph, costs, devices, walks, bound, time.perf_counter() - began)
    return ProvedSearch(graph, costs, devices, walks, bound)


def shares_of_work(graph: OperatorGraph, strategy: Sequence[Config], costs: Costs, devices: int) -> list[float]:
    """Which share of all computing each device does, counted in time by these costs."""
    work = [0] * devices
    for operator, config in zip(graph.operators, strategy, strict=True):
        for part, device in enumerate(config.devices):
            work[device] += sum(
                costs.compute(operator, config, part, direction) for direction in ("forward", "backward")
            )
    return [own / sum(work) for own in work]

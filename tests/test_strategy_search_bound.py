"""The bound of lesson 12's search, held against all strategies tried one by one."""

import pytest

from course_utils.lessons.strategy_search.costs.described_costs import described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.experiments import GTX_1080_TI, REPORT, Workload
from course_utils.lessons.strategy_search.graph.example_models import mlp
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.search.exhaustive import optimum_of
from course_utils.lessons.strategy_search.search.lower_bound import bound_below
from course_utils.lessons.strategy_search.search.many_walks import find_strategy
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables

ALEXNET = Workload(
    "AlexNet", "course_utils.lessons.strategy_search.graph.example_models.alexnet", {}, (64, 3, 224, 224)
)
VGG11 = Workload("VGG-11", "course_utils.vgg.vgg11", {"norm": False}, (128, 3, 32, 32))


def costs_of(graph, devices, rate=12e9):
    nodes = describe({f"gpu{n}": 11 << 30 for n in range(devices)}, (10e-6, rate))
    return described_costs(graph, nodes, **GTX_1080_TI)


def test_the_bound_is_the_best_of_all_that_were_tried() -> None:
    tables = make_tables(five_operators(), HandCosts(), 2)
    best = optimum_of(tables)[1]
    assert bound_below(tables, 10 * best).nanoseconds == best
    assert bound_below(tables, best - 1).nanoseconds == best - 1


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("rate", [1e8, 1e9, 12e9, 1e12])
def test_small_networks_on_links_of_all_rates(devices, rate) -> None:
    graph = read_model(mlp((64, 300, 200, 10)), (32, 64))
    tables = make_tables(graph, costs_of(graph, devices, rate), devices)
    best = optimum_of(tables)[1]
    assert bound_below(tables, 10 * best).nanoseconds == best


@pytest.mark.parametrize("case", [REPORT, VGG11], ids=lambda case: case.name)
def test_on_two_gpus_the_walks_find_the_best(case) -> None:
    graph = case.graph()
    costs = costs_of(graph, 2)
    found = find_strategy(graph, costs, 2, iterations=25_000)
    bound = bound_below(make_tables(graph, costs, 2), found.nanoseconds)
    assert 0.95 * found.nanoseconds <= bound.nanoseconds <= found.nanoseconds

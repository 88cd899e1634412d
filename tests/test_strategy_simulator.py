"""Lesson 12's simulators: the task graph, and that full and incremental agree with it to the last nanosecond."""

import numpy as np
import pytest

from course_utils.strategy.incremental import Chains
from course_utils.strategy.random_graphs import random_costs, random_graph
from course_utils.strategy.simulate import makespan
from course_utils.strategy.tables import make_tables
from course_utils.strategy.tasks import task_graph


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("case", range(3))
def test_full_and_incremental_are_the_simulator_to_the_last_nanosecond(seed, devices, case):
    rng = np.random.default_rng([seed, devices, case])
    graph = random_graph(rng, int(rng.integers(3, 11)))
    costs = random_costs(rng, graph)
    tables = make_tables(graph, costs, devices)
    columns = np.stack([rng.integers(len(choices), size=5) for choices in tables.choices])
    assert tables.makespans(columns).tolist() == [simulated(graph, tables, column, costs) for column in columns.T]

    chains = Chains(tables, columns)
    for _ in range(2 * len(graph)):  # two sweeps: what is renewed must be right again in the second
        at = chains.at
        found = chains.makespans()
        for choice in range(len(tables.choices[at])):
            moved = chains.columns.copy()
            moved[at] = choice
            assert found[:, choice].tolist() == tables.makespans(moved).tolist()
        chain = int(rng.integers(5))
        assert found[chain, -1] == simulated(graph, tables, moved[:, chain], costs)
        chains.go_on(rng.integers(len(tables.choices[at]), size=5))


def simulated(graph, tables, column, costs):
    return makespan(task_graph(graph, tables.strategy(column), costs))

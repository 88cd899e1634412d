"""Lesson 12's simulators: the task graph, and that full and incremental agree with it to the last nanosecond."""

import numpy as np
import pytest

from course_utils.strategy.configurations import Config, configurations
from course_utils.strategy.graph import Operator, OperatorGraph
from course_utils.strategy.incremental import Chains, last_readers
from course_utils.strategy.random_graphs import random_costs, random_graph
from course_utils.strategy.simulate import makespan, simulate
from course_utils.strategy.tables import make_tables
from course_utils.strategy.tasks import Task, task_graph


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
        tries = rng.integers(len(tables.choices[at]), size=(3, 5))
        found = chains.makespans(tries)
        for one in range(3):
            moved = chains.columns.copy()
            moved[at] = tries[one]
            assert found[one].tolist() == tables.makespans(moved).tolist()
        chain = int(rng.integers(5))
        assert found[2, chain] == simulated(graph, tables, moved[:, chain], costs)
        chains.go_on(tries[0])


def simulated(graph, tables, column, costs):
    return makespan(task_graph(graph, tables.strategy(column), costs))

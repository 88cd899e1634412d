"""Lesson 12's simulators: the task graph, and that full and incremental agree with it to the last nanosecond."""

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.costs.described_costs import described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.example_models import transformer_block
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, megatron, on_one_device
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators
from course_utils.lessons.strategy_search.simulator.incremental import Chains, last_readers
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.simulate import makespan, simulate
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables
from course_utils.lessons.strategy_search.simulator.task_graph import Task, task_graph

MS = 1_000_000


def test_a_step_by_hand():
    graph, costs = five_operators(), HandCosts()
    assert simulated_at(graph, on_one_device(graph), costs) == 40 * MS  # (8 + 2 + 4) forward, (16 + 2 + 8) backward
    assert simulated_at(graph, data_parallel(graph, 2), costs) == 33 * MS  # 20 of computing, 12 and 1 of gradients


def test_an_exchange_begins_when_both_ends_are_free_and_gradients_go_the_other_way():
    graph, costs = five_operators(), HandCosts()
    strategy = data_parallel(graph, 2)
    strategy[3] = Config(devices=(1,))  # fc1 on device 1 alone
    tasks = task_graph(graph, strategy, costs)
    exchanges = {task.name: (task.device, task.nanoseconds, task.after) for task in tasks if " → " in task.name}
    assert set(exchanges) == {"pool1 → fc1", "fc1 → pool1", "fc1 → loss", "loss → fc1"}
    (pools,) = {task.after for task in tasks if task.name == "pool1 → fc1"}
    assert [tasks[one].name for one in pools] == ["pool1", "pool1"]
    sizes = {name: {task.nanoseconds for task in tasks if task.name == name} for name in exchanges}
    assert sizes["pool1 → fc1"] == sizes["fc1 → pool1"] == {2 * MS}  # 4 × 16 × 4 × 4 numbers, 512 in a millisecond


def test_a_configuration_that_is_no_choice_is_rejected_in_a_line():
    graph = five_operators()
    tables = make_tables(graph, HandCosts(), 2)
    with pytest.raises(CourseError, match=r"Operator 2 cannot be spread as .*devices=\(3,\)"):
        tables.column([Config(), Config(), Config(devices=(3,)), Config(), Config()])


def test_a_device_waits_for_its_own_tasks_and_for_those_it_is_after():
    tasks = [Task("a", 0, 5, ()), Task("b", 1, 9, ()), Task("c", 0, 2, (0, 1)), Task("d", 1, 1, (1,))]
    assert simulate(tasks) == [(0, 5), (0, 9), (9, 11), (9, 10)]
    assert makespan(tasks) == 11 and makespan([]) == 0


def test_equal_networks_share_their_exchanges_and_a_chain_its_last_readers():
    graph = five_operators()
    tables = make_tables(graph, HandCosts(), 2)
    assert last_readers(tables) == [0, 2, 3, 4, 4]
    column = tables.column(data_parallel(graph, 2))
    assert tables.strategy(column)[1:] == data_parallel(graph, 2)[1:]


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


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_tables_of_a_block_with_row_cuts_are_the_simulator(seed, devices):
    graph = read_model(transformer_block(8, 4), (6, 5, 8), row_cuts=True)
    costs = described_costs(graph, describe({str(n): 1 << 30 for n in range(devices)}, (1e-5, 1e9)), 1e10, 1e10)
    tables, rng = make_tables(graph, costs, devices), np.random.default_rng(seed)
    columns = np.stack([rng.integers(len(choices), size=20) for choices in tables.choices])
    assert any(config.row_cut for column in columns.T for config in tables.strategy(column))
    assert tables.makespans(columns).tolist() == [simulated(graph, tables, column, costs) for column in columns.T]


def test_a_row_cut_sends_partial_sums_of_what_others_keep():
    graph, costs = read_model(transformer_block(8, 4), (6, 5, 8), row_cuts=True), HandCosts(numbers=1)
    tasks = task_graph(graph, megatron(graph, 2), costs)
    sums = {(task.name, task.device): task.nanoseconds / MS for task in tasks if " sums" in task.name}
    # 5 positions of 6 texts with 8 channels: device 0 keeps 3 of them, device 1 keeps 2
    of_each = 6 * 3 * 8
    names = ("out sums", "down sums", "out sums backward", "down sums backward")
    assert sums == {(name, device): of_each for name in names for device in (0, 1)}
    moved = {task.name for task in tasks if " → " in task.name}
    assert {name for name in moved if "loss" not in name} == {
        "norm_1 → qkv",
        "qkv → norm_1",
        "norm_2 → up",
        "up → norm_2",
    }


def simulated(graph, tables, column, costs):
    return simulated_at(graph, tables.strategy(column), costs)


def simulated_at(graph, strategy, costs):
    return makespan(task_graph(graph, strategy, costs))

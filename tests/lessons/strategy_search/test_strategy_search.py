"""Lesson 12's search: the optimum on small graphs, memory limits, interruption, and the one walk that is read."""

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.plain_strategies import (
    choices_of,
    data_parallel,
    model_parallel,
    on_one_device,
)
from course_utils.lessons.strategy_search.pictures import (
    cost_over_iterations,
    predicted_measured,
    strategies,
    task_timelines,
)
from course_utils.lessons.strategy_search.search import many_walks
from course_utils.lessons.strategy_search.search.many_walks import find_strategy
from course_utils.lessons.strategy_search.search.metropolis import best_strategy
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators
from course_utils.lessons.strategy_search.simulator.incremental import Chains
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.simulation_rates import rates
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph
from workshop.bench.exhaustive_search import optimum
from workshop.bench.strategy_search import is_hit

GRAPH, COSTS = five_operators(), HandCosts()


def time_of(strategy, graph=GRAPH, costs=COSTS):
    return makespan(task_graph(graph, strategy, costs))


def test_the_search_comes_to_the_optimum_of_small_graphs(seed):
    hits = [is_hit(seed + one) for one in range(8)]
    assert sum(hits) >= 7, hits


def test_what_it_found_takes_as_long_as_the_simulator_says():
    found = find_strategy(GRAPH, COSTS, 2, iterations=2000)
    best, least = optimum(GRAPH, COSTS, 2)
    assert time_of(found.strategy) == found.nanoseconds == least == time_of(best)
    assert least <= min(time_of(one) for one in (on_one_device(GRAPH), data_parallel(GRAPH, 2)))
    assert found.iterations[-1] >= 2000 and not found.interrupted
    assert set(found.history) == set(many_walks.STARTS)
    assert all(len(chain) == len(found.iterations) for chains in found.history.values() for chain in chains)


def test_an_equal_seed_finds_the_same(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 9)
    costs = random_costs(rng, graph)
    one, other = (find_strategy(graph, costs, 3, iterations=600, seed=5) for _ in range(2))
    assert one.strategy == other.strategy and one.nanoseconds == other.nanoseconds


def test_one_walk_comes_there_too():
    choices = choices_of(GRAPH, 2)
    rng = np.random.default_rng(0)
    found = best_strategy(on_one_device(GRAPH), choices, time_of, lambda one: True, 3000, 3e6, rng)
    assert time_of(found) == optimum(GRAPH, COSTS, 2)[1]


def test_no_device_gets_more_than_it_has(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 6, skips=False)
    ample = random_costs(rng, graph, (2**40,) * 2)
    tables = make_tables(graph, ample, 2)
    whole = sum(int(memory[0, 0]) for memory in tables.memory)  # everything on device 0
    costs = random_costs(rng, graph, (int(0.9 * whole),) * 2)
    found, (best, least) = find_strategy(graph, costs, 2, iterations=4000), optimum(graph, costs, 2)
    for strategy in (found.strategy, best):
        column = tables.column(strategy)
        used = sum(memory[:, chosen] for memory, chosen in zip(tables.memory, column, strict=True))
        assert (used <= 0.9 * whole).all()
    assert found.nanoseconds >= least


def test_what_fits_nowhere_is_rejected():
    graph = random_graph(np.random.default_rng(0), 5)
    costs = random_costs(np.random.default_rng(0), graph, (10, 10))
    for look in (lambda: find_strategy(graph, costs, 2, iterations=200), lambda: optimum(graph, costs, 2)):
        with pytest.raises(CourseError, match="fits"):
            look()


def test_an_unknown_start_and_too_many_strategies_are_rejected_in_a_line():
    with pytest.raises(CourseError, match="starts from one, data, model, random, not from everywhere"):
        find_strategy(GRAPH, COSTS, 2, starts=("everywhere",))
    graph = random_graph(np.random.default_rng(1), 12)
    with pytest.raises(CourseError, match="find_strategy"):
        optimum(graph, random_costs(np.random.default_rng(1), graph), 4)


def test_interrupted_it_keeps_the_best_so_far(monkeypatch):
    moves, go_on = [], Chains.go_on

    def interrupted(self, chosen):
        moves.append(1)
        if len(moves) > 20:
            raise KeyboardInterrupt
        go_on(self, chosen)

    monkeypatch.setattr(Chains, "go_on", interrupted)
    found = find_strategy(GRAPH, COSTS, 2, iterations=10**9)
    assert found.interrupted and found.nanoseconds <= time_of(data_parallel(GRAPH, 2))


def test_strategies_that_people_choose():
    assert all(config.parts == (1, 1, 1) for config in on_one_device(GRAPH))
    assert [config.sample for config in data_parallel(GRAPH, 2)] == [1, 2, 2, 2, 2]
    assert [config.parameter for config in model_parallel(GRAPH, 2)] == [1, 2, 2, 2, 1]


def test_rates_are_told_for_all_three_ways():
    found = rates(GRAPH, COSTS, 2, seconds=0.01)
    assert list(found) == ["tasks", "full", "incremental"] and min(found.values()) > 0


def test_pictures_say_in_words_what_they_show():
    chosen = {"one device": on_one_device(GRAPH), "data parallel": data_parallel(GRAPH, 2)}
    assert "fc1 sample on 0, 1" in strategies(GRAPH, chosen, "Two strategies").alt_text
    tasks = {name: task_graph(GRAPH, one, COSTS) for name, one in chosen.items()}
    told = task_timelines(tasks, "Two steps").alt_text
    assert "one device takes 40 ms: device 0 computes 40 ms; device 1 waits 40 ms." in told
    assert "data parallel takes 33 ms: device 0 computes 20 ms and communicates 13 ms; device 1" in told
    found = find_strategy(GRAPH, COSTS, 2, iterations=500)
    picture = cost_over_iterations(found.history, "A search", found.nanoseconds, iterations=found.iterations)
    assert "data from 33 ms" in picture.alt_text and "The optimum takes 24 ms" in picture.alt_text
    picture = predicted_measured({"AlexNet": [(0.1, [0.11, 0.1, 0.13]), (0.3, [0.3])]}, "Near the line")
    assert "100 ms and 110 ms" in picture.alt_text
    for wrong in (
        lambda: strategies(GRAPH, {"short": []}, ""),
        lambda: task_timelines({"none": []}, ""),
        lambda: cost_over_iterations({"a": [[1, 2], [1]]}, ""),
        lambda: predicted_measured({"a": []}, ""),
    ):
        with pytest.raises(CourseError):
            wrong()

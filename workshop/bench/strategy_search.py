"""How quick the simulators of lesson 12 are, how quick its search, and how often it comes to the optimum.

Nothing is run on ranks here: the devices are described, and times drawn at random where they do not matter.
"""

import statistics
from math import prod

import numpy as np
import torch

from course_utils.lessons.strategy_search.graph.example_models import alexnet
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.search.many_walks import ITERATIONS, find_strategy
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.simulation_rates import rates
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables
from course_utils.torchvision_repair import load_torchvision
from workshop.bench.exhaustive_search import optimum_of
from workshop.bench.rows import Row, value_row

BENCH = "strategy"

DEVICES = 4
BATCH = (64, 3, 224, 224)
FULL, INCREMENTAL = {"vgg11": 3_000, "resnet50": 500}, {"vgg11": 50_000, "resnet50": 10_000}
RATIO = 7.0
"""FlexFlow reports 2.2 to 6.9 (Jia, Zaharia & Aiken 2018)."""
SEEDS, HITS = 100, 95
SECONDS = 3.0
MOST = 200_000
"""Strategies of a small graph, whose optimum is found by trying all."""


def graph_of(name: str) -> OperatorGraph:
    """The operators of one of torchvision's networks; nothing is allocated."""
    with torch.device("meta"):
        return read_model(getattr(load_torchvision().models, name)(), BATCH)


def rates_rows(runs: int) -> list[Row]:
    """Strategies simulated a second on four devices: task by task, in full, incrementally; and the last two's ratio."""
    rows = []
    for name in FULL:
        graph = graph_of(name)
        costs = random_costs(np.random.default_rng(0), graph)
        taken = [rates(graph, costs, DEVICES, seed=run) for run in range(runs)]
        goals = {"tasks": None, "full": FULL[name], "incremental": INCREMENTAL[name]}
        for method, goal in goals.items():
            values = [by_method[method] for by_method in taken]
            rows.append(value_row(BENCH, f"{name}: {method}", values, "/s", target=goal, better="higher"))
        ratios = [by_method["incremental"] / by_method["full"] for by_method in taken]
        metric = f"{name}: incremental / full"
        rows.append(value_row(BENCH, metric, ratios, "×", target=RATIO, better="higher"))
    return rows


def hits_rows(seeds: int = SEEDS) -> list[Row]:
    """On how many small graphs of this many, each with a seed of its own, the search comes to the optimum."""
    hits = sum(is_hit(seed) for seed in range(seeds))
    target = HITS * seeds / SEEDS
    return [value_row(BENCH, "small graphs: optimum found", [hits], f"of {seeds}", target=target, better="higher")]


def is_hit(seed: int) -> bool:
    """Whether the search's strategy takes no longer than the best of all, on a graph drawn by this seed."""
    random = np.random.default_rng(seed)
    while True:
        devices = int(random.integers(2, DEVICES + 1))
        graph = random_graph(random, int(random.integers(4, 9)))
        costs = random_costs(random, graph)
        tables = make_tables(graph, costs, devices)
        if prod(len(own) for own in tables.choices) <= MOST:
            break
    return find_strategy(graph, costs, devices, ITERATIONS // 2, seed=seed).nanoseconds == optimum_of(tables)[1]


def search_rows(runs: int) -> list[Row]:
    """Seconds of the search for AlexNet on two devices, as many proposals as in the report; and on four."""
    with torch.device("meta"):
        graph = read_model(alexnet(seed=None), BATCH)
    costs = random_costs(np.random.default_rng(0), graph, most=2 * 10**8)
    rows = []
    for devices, target in ((2, SECONDS), (DEVICES, None)):
        found = [find_strategy(graph, costs, devices, ITERATIONS, seed=run) for run in range(runs)]
        metric = f"AlexNet, {devices} devices: {ITERATIONS:,} proposals"
        rows.append(value_row(BENCH, metric, [result.seconds for result in found], "s", target=target))
        spread = statistics.median(result.nanoseconds for result in found) / min(result.nanoseconds for result in found)
        rows.append(value_row(BENCH, f"{metric}, median / best found", [spread], "×"))
    return rows

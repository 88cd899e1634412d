"""How many strategies a second each simulator judges on this machine."""

import time
from collections.abc import Callable

import numpy as np

from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.simulator.incremental import Chains
from course_utils.lessons.strategy_search.simulator.program_steps import Costs
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.step_tables import Tables, make_tables
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph

TOGETHER = 512
"""Strategies that full simulation takes at once: with more of them it is no faster."""
CHAINS = 64


def rates(graph: OperatorGraph, costs: Costs, devices: int, seconds: float = 1.0, seed: int = 0) -> dict[str, float]:
    """Strategies a second: task by task as `simulate` does, and all by matrices, in full and incrementally.

    "full" multiplies the matrices of a whole step for each strategy. "incremental" counts every configuration that is
    tried at an operator, and includes what is renewed as the chains take one of them and go on. Both do many at once.

    Args:
        seconds: for which each is repeated.
    """
    tables, random = make_tables(graph, costs, devices), np.random.default_rng(seed)
    strategies = [[own[random.integers(len(own))] for own in tables.choices] for _ in range(8)]
    return {
        "tasks": repeated(lambda: one_by_one(graph, costs, strategies), seconds),
        "full": repeated(lambda: in_full(tables, random), seconds),
        "incremental": repeated(incrementally(tables, random), seconds),
    }


def one_by_one(graph: OperatorGraph, costs: Costs, strategies: list) -> int:
    """Make and simulate the tasks of each; how many there were."""
    for strategy in strategies:
        makespan(task_graph(graph, strategy, costs))
    return len(strategies)


def in_full(tables: Tables, random: np.random.Generator) -> int:
    """Simulate strategies drawn at random with matrices; how many there were."""
    columns = np.stack([random.integers(len(own), size=TOGETHER) for own in tables.choices])
    return tables.makespans(columns).size


def incrementally(tables: Tables, random: np.random.Generator) -> Callable[[], int]:
    """A sweep of chains over all operators, taking a configuration at random; how many it tried."""
    chains = Chains(tables, np.stack([random.integers(len(own), size=CHAINS) for own in tables.choices]))

    def sweep() -> int:
        tried = 0
        for own, factors in zip(tables.choices, tables.factors, strict=True):
            tried += chains.makespans().size if factors else 0
            chains.go_on(random.integers(len(own), size=CHAINS))
        return tried

    return sweep


def repeated(work: Callable[[], int], seconds: float) -> float:
    """How many a second `work` does; it says how many it did each time."""
    work()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        done += work()
    return done / (time.perf_counter() - began)

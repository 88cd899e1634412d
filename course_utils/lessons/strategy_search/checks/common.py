"""What the checks of lesson 12 share: drawn strategies, and how a learner's objects are told to the check."""

from typing import Any

import numpy as np

from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of

NOTHING = "returned nothing"
OTHER_RANDOM = "are not the same again with an equal `random`"
SIGMAS = 6.0
"""So far from the expected number chance never leads."""


def shown(thing: Any) -> str:
    """An object in a few characters."""
    if thing is None:
        return "nothing"
    try:
        return repr(thing)[:60]
    except Exception:  # a learner's object may raise
        return type(thing).__name__


def drawn_strategy(rng: np.random.Generator, graph: OperatorGraph, devices: int) -> list[Config]:
    """A configuration of each operator, drawn at random."""
    return [own[rng.integers(len(own))] for own in choices_of(graph, devices)]


def far_off(number: int, tries: int, probability: float) -> bool:
    """Whether this many hits in this many tries cannot be chance."""
    expected = tries * probability
    return abs(number - expected) > SIGMAS * (expected * (1 - probability)) ** 0.5 + 1e-9

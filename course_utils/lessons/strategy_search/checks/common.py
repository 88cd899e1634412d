"""What the checks of lesson 12 share: drawn strategies, and how a learner's objects are told to the check."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course_utils.checks.finding import Finding, own
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of

RETURNED_NOTHING = "returned-nothing"
"""The key of a function that returned None."""
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


def malformed(key: str, **values: Any) -> dict[str, Any]:
    """Runs on a rank: what a harness hands back in place of a result of another form than was asked for."""
    return {"malformed": key, **values}


def form_finding(handed_back: Any, words: Mapping[str, str]) -> Finding | None:
    """Make the finding of what is `malformed`; None of anything else.

    Args:
        words: key → sentence, as for `finding.own`.
    """
    if not isinstance(handed_back, dict) or "malformed" not in handed_back:
        return None
    values = {**handed_back}
    key = values.pop("malformed")
    return own(key, words[key], **values)


def not_repeatable(what: str) -> Finding:
    """The finding that the answers, or proposals, hang on other chance than that of `random`."""
    return own(
        "not-repeatable", "with an equal generator `random`, the {what} are different the second time", what=what
    )


def drawn_strategy(rng: np.random.Generator, graph: OperatorGraph, devices: int) -> list[Config]:
    """A configuration of each operator, drawn at random."""
    return [own[rng.integers(len(own))] for own in choices_of(graph, devices)]


def far_off(number: int, tries: int, probability: float) -> bool:
    """Whether this many hits in this many tries cannot be chance."""
    expected = tries * probability
    return abs(number - expected) > SIGMAS * (expected * (1 - probability)) ** 0.5 + 1e-9

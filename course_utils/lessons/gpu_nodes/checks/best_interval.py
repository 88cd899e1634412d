"""The check of `best_interval`: Young's formula for one node and for many, in the right units."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count


def by_hand(save_seconds: float, node_hours: float, nodes: int) -> float:
    """With the rate of failures in a second in place of the time between them."""
    failures = nodes / (node_hours * 3600)
    return (2 * save_seconds / failures) ** 0.5


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(save_seconds: float, node_hours: float, nodes: int, key: str = "") -> Case:
        label = f"{save_seconds:g} s for a checkpoint, {node_hours:,g} h between failures, {count(nodes, 'node')}"
        given = (save_seconds, node_hours, nodes)
        return Case(label, [given], [by_hand(*given)], with_comm=False, tolerance=1e-9, key=key)

    yield case(50, 1, 1)
    yield case(50, 4, 4)
    yield case(8, 1000, 9)
    for _ in range(4):
        yield case(round(float(rng.uniform(2, 90)), 1), int(rng.integers(5000, 60_000)), int(rng.integers(3, 3000)))
    yield case(0.25, 10_000, 1)
    yield case(60, 6000.5, 2048)
    yield case(9000, 2, 2, "longer-than-nodes-live")
    yield case(5, 0.5, 3)
    yield in_a_row(case(50, 1, 1), case(8, 1, 9))
    yield from rejections("best_interval", [(0, 10, 1), (5, 0, 1), (5, 10, 0), (-5, 10, 1), (5, -1, 1), (5, 10, -2)])
    yield from rejections("best_interval", [(-5, -1, 1), (5, -1, -2)])


EXERCISE = Exercise(
    library="save_interval",
    number=4,
    minutes=5,
    difficulty=1,
    turn="the cost of checkpoints against the cost of failures",
    title="how often to save",
    cases=_cases,
    hints=(
        "If you save every t seconds, a share C / t of the time goes into writing. A failure every M seconds loses "
        "t / 2 on average, which is a share of t / 2M. For which t is their sum least, and what is M for all nodes?",
        "M is `node_hours * 3600 / nodes`. The sum C / t + t / 2M is least if both terms are equal, so t² is 2 C M.",
    ),
    praise=lambda outcome: "one node and thousands, with hours turned into seconds; impossible arguments are rejected",
)

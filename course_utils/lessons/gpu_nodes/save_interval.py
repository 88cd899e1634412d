"""How often to save: what is written too often against what is lost, on paper and in a simulation of failures."""

import math

import numpy as np

from course_utils.errors import CourseError

HOUR = 3600.0
"""Seconds."""


def best_interval(save_seconds: float, node_hours: float, nodes: int) -> float:
    """Return how many seconds of work between two checkpoints leave the most time for work.

    The interval is √(2 C M), where C is the time that a checkpoint takes and M the mean time between
    two failures of the run. A run on n nodes stops if any of them fails, so M is an n-th of the
    mean time between failures of one node. The formula is derived for C far below M, but it is
    used for all C.

    Args:
        save_seconds: C, during which nothing is trained.
        node_hours: the mean time between failures of one node, in hours.
        nodes: n.

    Raises:
        CourseError: an argument is not above 0.

    Source: Young 1974, "A first order approximation to the optimum checkpoint interval"; Daly 2006,
    equation 13.
    """
    if min(save_seconds, node_hours, nodes) <= 0:
        raise CourseError("Seconds, hours and nodes must be above 0.")
    # Half an interval is lost at a failure, on average; a save costs C: the sum of both, per second, is least here.
    between_failures = node_hours * HOUR / nodes
    return math.sqrt(2 * save_seconds * between_failures)


def goodput(interval: float, save_seconds: float, mean_seconds: float, restart_seconds: float = 0.0) -> float:
    """The share of all time in which work is done that lasts, expected with failures that come at random.

    Args:
        interval: seconds of work between two checkpoints.
        save_seconds: of a checkpoint.
        mean_seconds: between two failures, which come at any moment alike (exponentially distributed).
        restart_seconds: from a failure until work goes on; it may be hit by one, too.

    Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", equation 20.
    """
    again = math.exp(restart_seconds / mean_seconds)
    return interval / (mean_seconds * again * math.expm1((interval + save_seconds) / mean_seconds))


def simulated_goodput(
    interval: float,
    save_seconds: float,
    mean_seconds: float,
    restart_seconds: float = 0.0,
    hours: float = 54 * 24.0,
    seed: int = 0,
) -> float:
    """The same, counted in a simulation: failures are drawn, and time is only added up. Nothing is trained.

    Args:
        hours: of work that lasts until the training is over.
        seed: of the drawn failures.
    """
    rng = np.random.default_rng(seed)
    passed, saved, alive = 0.0, 0.0, rng.exponential(mean_seconds)
    starts = False  # whether a restart comes before the next piece of work
    while saved < hours * HOUR:
        needed = interval + save_seconds + (restart_seconds if starts else 0.0)
        if alive >= needed:  # worked, and saved
            passed, alive, saved, starts = passed + needed, alive - needed, saved + interval, False
        else:  # all since the last checkpoint is lost
            passed, alive, starts = passed + alive, rng.exponential(mean_seconds), True
    return saved / passed

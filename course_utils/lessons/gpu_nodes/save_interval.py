"""How often to save: the cost of writing against the cost of lost work, on paper and in a simulation of failures."""

import math

import numpy as np

from course_utils.errors import CourseError

HOUR = 3600.0
"""Seconds."""


def best_interval(save_seconds: float, node_hours: float, nodes: int) -> float:
    """Return how many seconds of work between two checkpoints leave the most time for work.

    It is √(2 C M). C is the time that all ranks wait for a checkpoint, and M is the mean time
    between failures of the whole run. A failure of any node stops the run, so with n nodes M is
    an n-th of one node's. The formula is an approximation for a C that is much smaller than M. Its
    value is returned in other cases, too.

    Args:
        save_seconds: C, during which no rank trains.
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
    """Return the expected share of the time that goes into work that is kept, with failures at random moments.

    Args:
        interval: seconds of work between two checkpoints.
        save_seconds: of a checkpoint.
        mean_seconds: between two failures; the time between them is exponentially distributed.
        restart_seconds: from a failure until work resumes; a restart can fail, too.

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
    """Return the same from a simulation that draws failures at random and adds up times; nothing is trained.

    Args:
        hours: of work that is kept until the run is over.
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

"""Calibrated waiting in place of arithmetic, where there are more stages than cores.

Four stages on two cores cannot compute at once, so their run would show the cores and not the schedule. A stage that
waits needs no core. Its arithmetic is still done, on a model so small that it takes no time; the rest of the stage time
is slept. A page that shows such a run says so.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, INPUT, WEIGHT, Action
from course_utils.trace.recorder import phase

Pace = Callable[[Action], float]
"""Action → how many seconds it takes at least."""

_SPIN = 0.0003  # seconds before the end at which sleeping, which may come back late, gives way to looking at the clock


def stage_pace(forward: float, input_gradient: float, weight_gradient: float) -> Pace:
    """The same time for every stage; a whole backward pass takes as long as its halves together."""
    seconds = {FORWARD: forward, INPUT: input_gradient, WEIGHT: weight_gradient}
    seconds[BACKWARD] = input_gradient + weight_gradient
    return lambda action: seconds[action.kind]


@contextmanager
def at_work(action: Action, pace: Pace | None = None) -> Iterator[None]:
    """A phase of the trace, named after the action; with a pace it lasts as long as the pace says, if not longer."""
    end = time.perf_counter() + (pace(action) if pace else 0.0)
    with phase(str(action)):
        yield
        while (left := end - time.perf_counter()) > 0:
            time.sleep(max(0.0, left - _SPIN))

"""Rates that bring the planner nearest to published runs on H100 GPUs, fitted to the odd rows of their table alone.

`python -m workshop.planner_rates` fits, and prints the errors of both halves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import FITTED, Rates
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import H100Run, halves, published_runs

BOUNDS = {
    "products": (0.3, 1.0),
    "float8": (0.2, 1.0),
    "attention": (0.1, 1.0),
    "eager": (0.5, 20.0),
    "compiled": (0.5, 10.0),
    "messages": (0.0, 1.0),
    "links": (0.3, 1.0),
    "capped": (0.5, 1.0),
    "logit": (4.0, 24.0),
    "reserve": (1.0, 1.5),
}
"""Of each rate: what is physically possible, or nearly."""
STEPS = (0.1, 0.03, 0.01)
"""Shares of a bound's width by which a rate is moved, one after the other until nothing gets better."""


def distance(rates: Rates, runs: Sequence[H100Run]) -> float:
    """Mean of |log (predicted / published)|, of steps and of memory each; one bad row does not decide."""
    times, memories = [], []
    for run in runs:
        choice = run.predicted(rates)
        times.append(abs(math.log(choice.step / run.seconds)))
        if run.memory:
            memories.append(abs(math.log(choice.memory.total / run.memory)))
    return sum(times) / len(times) + sum(memories) / len(memories)


def fit_rates(start: Rates, runs: Sequence[H100Run], measure: Callable = distance) -> Rates:
    """Move one rate at a time, by smaller and smaller steps, as long as the runs come nearer."""
    best, least = start, measure(start, runs)
    for step in STEPS:
        better = True
        while better:
            better = False
            for name, (low, high) in BOUNDS.items():
                for move in (-step, step):
                    value = min(high, max(low, getattr(best, name) + move * (high - low)))
                    moved = replace(best, **{name: round(value, 3)})
                    found = measure(moved, runs)
                    if found < least - 1e-6:
                        best, least, better = moved, found, True
    return best


if __name__ == "__main__":
    found = fit_rates(FITTED, [run for run in published_runs() if run.fits_rates])
    for name, value in asdict(found).items():
        print(f"{name} = {value}")
    for half, result in halves(found).items():
        print(f"{half}: {result}")

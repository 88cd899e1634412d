"""Rates that bring the planner nearest to real runs on H100 and H200 GPUs, fitted to the odd rows of each table alone.

`python -m workshop.planner_rates` fits, and prints the errors of both halves, and those of rows that were left out in
turn.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import FITTED, Rates
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import (
    H100Run,
    Prediction,
    errors_of,
    halves,
    measured_steps,
    predictions,
    published_runs,
)

BOUNDS = {
    "products": (0.3, 1.0),
    "float8": (0.2, 1.0),
    "attention": (0.1, 1.0),
    "hopper": (0.1, 1.0),
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
STARTS = 40
"""Points from which the rates are moved. From most of them a fit ends where no single move helps, but several would."""
FOLDS = 6
"""Parts into which the rows are cut; each is predicted with rates that are fitted to the others."""


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


def best_rates(runs: Sequence[H100Run], starts: int) -> Rates:
    """Return the best of several fits: from the present rates, and from points drawn with a fixed seed."""
    draw = random.Random(0).uniform
    found = [fit_rates(FITTED, runs)]
    for _ in range(starts - 1):
        drawn = {name: round(draw(low, high), 3) for name, (low, high) in BOUNDS.items()}
        found.append(fit_rates(Rates(**drawn), runs))
    return min(found, key=lambda rates: distance(rates, runs))


def left_out(runs: Sequence[H100Run], starts: int) -> list[Prediction]:
    """Predict each row with rates that were fitted without it: every `FOLDS`th row is left out at a time."""
    found = []
    for fold in range(FOLDS):
        others = [run for index, run in enumerate(runs) if index % FOLDS != fold]
        found += predictions(runs[fold::FOLDS], best_rates(others, starts))
    return found


if __name__ == "__main__":
    tables = {"published": published_runs(), "on one GPU": measured_steps()}
    every = [run for runs in tables.values() for run in runs]
    found = best_rates([run for run in every if run.fits_rates], STARTS)
    for name, value in asdict(found).items():
        print(f"{name} = {value}")
    for title, runs in tables.items():
        for half, result in halves(found, runs).items():
            print(f"{title}, {half}: {result}")
    without = left_out(every, STARTS // 5)
    for title, runs in tables.items():
        print(f"{title}, left out: {errors_of([pair for pair in without if pair[0] in runs])}")

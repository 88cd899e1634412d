"""The search as one walk through the strategies: propose another, accept it or not, keep the best.

Source: Jia, Zaharia & Aiken 2018, section 6.2; Metropolis et al. 1953, "Equation of State Calculations by Fast
Computing Machines".
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy


def propose(
    strategy: Strategy,
    choices: Sequence[Sequence[Config]],
    random: np.random.Generator,
) -> list[Config]:
    """Another strategy: one operator, drawn at random, gets another of its configurations, drawn at
    random.

    Args:
        strategy: a list or a tuple; stays as it is.
        choices: the configurations of each operator. One that has no other keeps it and is not
            drawn.
    """
    # Draw among operators and configurations that change something,
    # so that every proposal is another strategy.
    movable = [number for number, own in enumerate(choices) if len(own) > 1]
    number = random.choice(movable)
    others = [config for config in choices[number] if config != strategy[number]]
    proposed = list(strategy)
    proposed[number] = others[random.integers(len(others))]
    return proposed


def metropolis_accept(
    old: float,
    new: float,
    temperature: float,
    random: np.random.Generator,
) -> bool:
    """Whether to go on with a strategy that takes `new` in place of one that takes `old`.

    Always if it takes no longer; else with probability exp(−(new − old) / temperature), never at
    temperature 0.
    """
    if new <= old:
        return True
    # A worse strategy now and then: else the walk stays in the first valley that it meets.
    return temperature > 0 and random.random() < math.exp(-(new - old) / temperature)


def best_strategy(
    start: Strategy,
    choices: Sequence[Sequence[Config]],
    makespan_of: Callable[[Strategy], int],
    fits: Callable[[Strategy], bool],
    iterations: int,
    temperature: float,
    random: np.random.Generator,
) -> list[Config]:
    """The quickest strategy met on a walk of this many proposals, which never goes to one that does
    not fit.

    Args:
        start: where the walk begins; it fits.
        choices: the configurations of each operator.
        makespan_of: simulates a training step, in nanoseconds.
        fits: whether the devices' memory is enough.
        temperature: in nanoseconds; how much longer a strategy may take and still be accepted now
            and then.
    """
    now, time = list(start), makespan_of(start)
    best, least = now, time
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        if not fits(proposed):
            continue
        new = makespan_of(proposed)
        if metropolis_accept(time, new, temperature, random):
            now, time = proposed, new
        # The walk goes on to worse ones; the best that it has met is kept apart.
        if new < least:
            best, least = proposed, new
    return best

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
    """Return a new strategy in which one operator has a different configuration, both drawn at
    random.

    Args:
        strategy: a list or a tuple, which stays as it is.
        choices: the configurations of each operator. An operator with a single one is not drawn.
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
    """Decide whether to go on with a strategy that takes `new` instead of one that takes `old`.

    Always if it takes no longer, otherwise with probability exp(−(new − old) / temperature), and
    never at temperature 0.
    """
    if new <= old:
        return True
    # Without a worse strategy now and then, the walk would stay in the first valley that it meets.
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
    """Return the fastest strategy that a walk of this many proposals has met, start included.

    A proposal that does not fit is neither simulated nor accepted. If several strategies are
    equally fast, any of them will do.

    Args:
        start: where the walk begins. It fits.
        choices: the configurations of each operator.
        makespan_of: simulates a training step and returns its nanoseconds.
        fits: returns whether the devices have enough memory.
        temperature: in nanoseconds, as for `metropolis_accept`.
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
        # The walk may go on to worse strategies, so the best that it has met is kept separately.
        if new < least:
            best, least = proposed, new
    return best

"""Refused with: How many strategies are simulated for each proposal?"""

from itertools import product


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    every = [list(strategy) for strategy in product(*choices)]
    return min((one for one in every if fits(one)), key=lambda one: (makespan_of(one), makespan_of(one)))

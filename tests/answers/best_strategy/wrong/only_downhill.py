"""Refused with: How does a walk leave a strategy from which each single change leads to a slower one?"""

from course_utils.lessons.strategy_search.search.metropolis import propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    best, least = list(start), makespan_of(start)
    for _ in range(iterations):
        proposed = propose(best, choices, random)
        if fits(proposed) and makespan_of(proposed) < least:
            best, least = proposed, makespan_of(proposed)
    return best

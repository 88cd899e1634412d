"""Refused with: How does a walk leave a strategy from which each single change leads to a slower one?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    best, least = list(start), makespan_of(start)
    for _ in range(iterations):
        proposed = propose(start, choices, random)
        if not fits(proposed):
            continue
        new = makespan_of(proposed)
        if new < least and metropolis_accept(least, new, temperature, random):
            best, least = proposed, new
    return best

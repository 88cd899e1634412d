"""Refused with: Which is the best strategy before the first proposal?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now, time, least = list(start), makespan_of(start), float("inf")
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        if not fits(proposed):
            continue
        new = makespan_of(proposed)
        if metropolis_accept(time, new, temperature, random):
            now, time = proposed, new
        if new < least:
            best, least = proposed, new
    return best

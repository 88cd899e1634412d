"""Refused with: Which strategies fit into the devices' memory?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now, time = list(start), makespan_of(start)
    best, least = now, time
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        new = makespan_of(proposed)
        if metropolis_accept(time, new, temperature, random):
            now, time = proposed, new
        if new < least:
            best, least = proposed, new
    return best
